/**
 * The gateway dies before and after each of its steps, for each way to send and each thing that a blind provider may do
 * (behaviour.md, F1 to F6, F10; reliability.md, faults 1 to 6, invariants 1, 3, 4, 8, 13). Then another gateway's rescuer
 * and dispatcher pass, the caller repeats, and what is told is held against what the provider knows.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Answer } from '../../src/core/answer.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { namesOf } from '../../src/operations/plan-message.ts'
import { sendMessage } from '../../src/operations/send-message.ts'
import * as dispatcher from '../../src/workers/dispatcher.ts'
import { useDatabase } from '../support/database.ts'
import {
  accepted,
  lost,
  notSent,
  rejected,
  testGateway,
  until,
  type Call,
  type TestGateway,
} from '../support/gateway.ts'
import { makeDue, rescue } from '../operations/steps.ts'
import { isReplay, problemIn, told } from '../operations/told.ts'
import { mortalGateway, type Death, type Life } from './mortal.ts'

const database = useDatabase()
/** Outlives all others; its store is the one that they use. */
let survivor: TestGateway
beforeAll(async () => {
  survivor = await testGateway(database.url, { leaseMarginMs: 100 })
})
afterAll(async () => survivor.close())

type Repeated = Awaited<ReturnType<TestGateway['send']>>
interface Way {
  readonly async: boolean
  readonly request: MessageRequest
}

interface Fate {
  /** What the provider does with a message, call by call; the last one for all that follow. */
  readonly acts: readonly { readonly does: 'accepts' | 'refuses' | 'nothing'; readonly tells: () => Outcome }[]
  readonly undisturbed: string
}
const accepts = { does: 'accepts', tells: () => accepted() } as const
const fates: Readonly<Record<string, Fate>> = {
  'accepts it': { acts: [accepts], undisturbed: '201 sent' },
  'refuses it': { acts: [{ does: 'refuses', tells: () => rejected() }], undisturbed: '422 message-rejected' },
  'accepts it and its answer is lost': {
    acts: [{ does: 'accepts', tells: () => lost() }],
    undisturbed: '504 outcome-unknown',
  },
  'is not reached, then accepts it': {
    acts: [{ does: 'nothing', tells: () => notSent() }, accepts],
    undisturbed: '201 sent',
  },
}
const request: MessageRequest = { channel: 'sms', to: '+447700900123', content: { text: 'crash' } }
const ways: Readonly<Record<string, Way>> = {
  synchronous: { async: false, request },
  asynchronous: { async: true, request },
  scheduled: { async: false, request: { ...request, delaySeconds: 600 } },
}

interface Row extends Record<string, unknown> {
  readonly status: string
  readonly attempts: number
}
async function rowOf(key: string): Promise<Row | undefined> {
  return (await database.query<Row>(`SELECT status, attempts FROM messages WHERE idempotency_key = $1`, [key]))[0]
}
const waits = (row: Row | undefined): boolean => row?.status === 'queued' || row?.status === 'scheduled'

/** Sends, and plays the dispatcher's loop, until all is done or the gateway is dead. @returns what the caller was told */
async function live({ deps, death, isDead }: Life, key: string, way: Way): Promise<Answer | undefined> {
  const scope = { account: 'default', environment: 'live' } as const
  const asked = {
    ...way,
    scope,
    keyHeader: { kind: 'key', key } as const,
    waitMs: 10_000,
    traceparent: null,
    hasPrecondition: false,
  }
  let heard: Answer | undefined
  sendMessage(deps, asked, namesOf(asked)).then(
    (answer) => (heard = answer),
    () => {}, // its patience ended long after it was dead
  )
  for (;;) {
    await until(async () => heard !== undefined || isDead() || waits(await rowOf(key)))
    if (isDead() || !waits(await rowOf(key))) return heard
    await makeDue(database)
    const pass = dispatcher.runOnce(deps).then(async ({ done }) => done)
    await Promise.race([pass, death])
  }
}

/** Leases lapse, what waits is due, and a gateway's workers pass until nothing is left to do. */
async function recover({ deps, death, isDead }: Pick<Life, 'deps' | 'death' | 'isDead'>): Promise<void> {
  const pass = async (): Promise<void> => {
    await rescue({ deps })
    const { done } = await dispatcher.runOnce(deps)
    await done
  }
  await until(async () => {
    await database.query(`UPDATE messages SET lease_until = now() - interval '1 millisecond' WHERE status = 'sending'`)
    await database.query(`UPDATE due_work SET due_at = now() - interval '1 millisecond' WHERE task <> 'unknown'`)
    await Promise.race([pass(), death])
    return isDead() || (await database.query("SELECT 1 FROM due_work WHERE task <> 'unknown'")).length === 0
  })
}
const recoverForGood = async (): Promise<void> =>
  recover({ deps: survivor.deps, death: new Promise(() => {}), isDead: () => false })

/** The caller repeats; what waits for a worker meanwhile gets one. */
async function repeat(key: string, way: Way): Promise<Repeated> {
  let heard: Repeated | undefined
  const prefer = way.async ? 'respond-async' : 'wait=10'
  const repeating = survivor.send(way.request, { key, prefer }).then((answer) => (heard = answer))
  await until(async () => heard !== undefined || waits(await rowOf(key)))
  if (heard === undefined || heard.statusCode === 202) await recoverForGood()
  return repeating
}

const sentOf: Readonly<Record<string, string>> = { sent: 'yes', unknown: 'maybe', failed: 'no' }

interface Played {
  readonly status: string
  /** Rules that did not hold, with the life that broke them. */
  readonly broken: readonly string[]
  readonly died: boolean
  /** Of the gateway that recovered, if it was to die too. */
  readonly recovererDied: boolean
}

/** One life, its recovery, and what the caller is told then. @param second of the first gateway that recovers */
async function play(way: string, fate: string, first: Death, second?: Death): Promise<Played> {
  const deaths = [first, ...(second === undefined ? [] : [second])].map(({ moment, at }) => `${moment} ${at}`)
  const key = [way, fate, ...deaths].join(' ').replaceAll(/\W/g, '-')
  const { acts, undisturbed } = fates[fate] ?? { acts: [accepts], undisturbed: '' }
  const sent = ways[way] ?? { async: false, request }
  const calls: Call[] = []
  const did: string[] = []
  const vendor = (call: Call): Outcome => {
    const act = acts[Math.min(calls.length, acts.length - 1)] ?? accepts
    calls.push(call)
    did.push(act.does)
    return act.tells()
  }
  survivor.provider.answer = vendor
  const life = mortalGateway(survivor.deps, vendor, first)
  const before = await live(life, key, sent)
  const recoverer = second === undefined ? null : mortalGateway(survivor.deps, vendor, second)
  if (recoverer !== null) await recover(recoverer)
  await recoverForGood()

  const once = await repeat(key, sent)
  const again = await repeat(key, sent)
  const { status = 'not there' } = (await rowOf(key)) ?? {}
  const inFlight = await database.query(`SELECT 1 FROM messages WHERE status = 'sending'`)
  const { sent: said = 'yes' } = problemIn(again)
  const arrived = did.filter((does) => does !== 'nothing')
  const rules: Readonly<Record<string, boolean>> = {
    'at most one call may have arrived': arrived.length <= 1,
    'all calls are of one message': new Set(calls.map(({ messageId }) => messageId)).size <= 1,
    'the end is definite, nothing is in flight':
      ['sent', 'failed', 'unknown'].includes(status) && inFlight.length === 0,
    'it is sent only if the provider accepted it': status !== 'sent' || arrived.includes('accepts'),
    'it is failed only if the provider refused it': status !== 'failed' || arrived.includes('refuses'),
    'only a death can end without a call': calls.length > 0 || status === 'unknown',
    'undisturbed, it ends as the provider says': life.isDead() || told(again) === undisturbed,
    'the truth is told': said === sentOf[status],
    'a repeat is a replay, each the same': isReplay(again) && (once.statusCode === 202 || again.body === once.body),
    'what the caller was told for good stands, byte for byte':
      before === undefined || [202, 504].includes(before.status) || again.body === before.body,
  }
  const broken = Object.keys(rules).filter((rule) => rules[rule] === false)
  const about = `${key}: ${life.steps.join(', ')}; the provider ${did.join(', ')}; ${status}`
  return {
    status,
    died: life.isDead(),
    recovererDied: recoverer?.isDead() === true,
    broken: broken.map((rule) => `${rule} (${about})`),
  }
}

const moments = ['before', 'after'] as const

test.each(Object.keys(ways).flatMap((way) => Object.keys(fates).map((fate) => ({ way, fate }))))(
  'F10 killed at every step of a $way send, the provider $fate: at most one call arrives, and the truth is told',
  async ({ way, fate }) => {
    const ends = new Set<string>()
    for (const moment of moments) {
      let at = 1
      for (let died = true; died; at++) {
        const played = await play(way, fate, { at, moment })
        expect(played.broken).toEqual([])
        ends.add(played.status)
        died = played.died
      }
      expect(at, 'claim, call and outcome at least were steps to die at').toBeGreaterThan(4)
    }
    expect(ends, 'some deaths left nobody who knew').toContain('unknown')
  },
)

test.each([
  { way: 'synchronous', fate: 'is not reached, then accepts it' },
  { way: 'asynchronous', fate: 'accepts it' },
])(
  'F10 killed at every step of a $way send, and again at every step of the recovery: the same holds (the provider $fate)',
  async ({ way, fate }) => {
    for (const moment of moments) {
      let at = 1
      for (let alive = false; !alive; at++)
        for (let second = 1, died = true; died; second++) {
          const played = await play(way, fate, { at, moment }, { at: second, moment })
          expect(played.broken).toEqual([])
          died = played.recovererDied
          alive = !played.died
        }
      expect(at).toBeGreaterThan(4)
    }
  },
)
