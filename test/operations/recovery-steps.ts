/** What the tests of recovery share: providers that can do something about a lost answer, time that passes, one step. */
import { performance } from 'node:perf_hooks'
import type { Clock } from '../../src/clock.ts'
import type { Capabilities, Deduplication, Lookup } from '../../src/core/capabilities.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import type { Provider } from '../../src/providers/provider.ts'
import type { createReconciler } from '../../src/workers/reconciler.ts'
import type { TestDatabase } from '../support/database.ts'
import { fakeProvider, lost, sms, type FakeProvider, type TestGateway } from '../support/gateway.ts'
import { untilStatus } from './steps.ts'
import { messageIn, uuidOf, type MessageTold } from './told.ts'

export const hourMs = 3_600_000

const byKey: Deduplication = {
  keyField: 'header Idempotency-Key',
  keyFormat: 'message_id',
  lifetimeMs: 24 * hourMs,
  marginMs: hourMs,
  repeat: 'same_response',
}
/** An absence counts from 5 s after the start: the lease of a fake call is 4 s. */
const byReference: Lookup = {
  match: 'exact',
  strength: 'strong',
  settlingMs: 1_000,
  retentionMs: 7 * 24 * hourMs,
  marginMs: hourMs,
}

/** What a provider can do, in a word; the rest is as above. */
export const able = ({
  key,
  look,
}: { key?: boolean | Partial<Deduplication>; look?: boolean | Partial<Lookup> } = {}): Capabilities => ({
  channels: ['sms', 'webhook'],
  deduplication: key === undefined || key === false ? null : { ...byKey, ...(key === true ? {} : key) },
  lookup: look === undefined || look === false ? null : { ...byReference, ...(look === true ? {} : look) },
  lateEvidence: 'none',
  acceptance: 'status',
})

/** Renders each time anew, and never the same twice: what is the same was kept. */
export function recoverableProvider(capabilities: Capabilities): FakeProvider {
  let renderings = 0
  const render: Provider['render'] = ({ to, content }, { messageId }) =>
    JSON.stringify({ messageId, to, content, rendering: ++renderings })
  return fakeProvider('fake', { capabilities, render })
}

/** The configuration says otherwise from now on. */
export const reconfigure = (provider: FakeProvider, settings: Partial<Provider>): void =>
  void Object.assign(provider, settings)

/** The n-th call from now meets the n-th outcome, the last one all that follow. */
export function answers(provider: FakeProvider, ...outcomes: readonly [Outcome, ...Outcome[]]): void {
  let nth = 0
  provider.answer = () => outcomes[Math.min(nth++, outcomes.length - 1)] ?? outcomes[0]
}

/** What the provider says to a repeat while the first call runs there. */
export const keyInUse = (retryAfterMs: number | null = null): Outcome => ({
  kind: 'unknown',
  retryAfterMs,
  evidence: { phase: 'answered', httpStatus: 409, code: 'key_in_use', detail: 'the first request runs' },
})
export const keyReused = (): Outcome => ({
  kind: 'unknown',
  isReplayPointless: true,
  isKeyConflict: true,
  evidence: { phase: 'answered', httpStatus: 409, code: 'key_reused', detail: 'another request has it' },
})

/** A clock of a process in which time passes when the test says so. */
export function passingTime(): {
  /** For everybody: the data base's time and this process's own. */
  pass: (ms: number) => void
  /** The same, in no time: no lease gets older by it. */
  jump: (ms: number) => void
  reset: () => void
  clock: (real: Clock) => Clock
} {
  let passedMs = 0
  let jumpedMs = 0
  const mark: Clock['mark'] = () => ({ monotonicMs: performance.now() + passedMs, wallMs: Date.now() + passedMs })
  return {
    pass: (ms) => void (passedMs += ms),
    jump: (ms) => void (jumpedMs += ms),
    reset: () => {
      passedMs = 0
      jumpedMs = 0
    },
    clock: (real) => ({
      ...real,
      now: () => new Date(real.now().getTime() + passedMs + jumpedMs),
      latest: () => new Date(real.latest().getTime() + passedMs + jumpedMs),
      mark,
      elapsedMs: ({ monotonicMs }) => mark().monotonicMs - monotonicMs,
    }),
  }
}

export interface PlanTold {
  readonly step: string
  readonly at: string
  readonly givesUpAt: string
  readonly steps: number
}
export interface UnsettledTold extends MessageTold {
  readonly plan: PlanTold | null
  readonly openAttempts: readonly string[]
}

export async function shown(gateway: TestGateway, id: string): Promise<UnsettledTold> {
  return (await gateway.get(`/v1/messages/${id}`)).json<UnsettledTold>()
}

/** A message whose first answer was lost. @returns its id */
export async function lostMessage(gateway: TestGateway, key: string, more: object = {}): Promise<string> {
  gateway.provider.answer = () => lost()
  const { id } = messageIn(await gateway.send(sms('once', more), { key, prefer: 'wait=0' }))
  await untilStatus(gateway, id, 'unknown')
  return id
}

type Reconciler = ReturnType<typeof createReconciler>

/** The time of this message's next step has come, and of no other's. */
export async function makeStepDue(database: TestDatabase, id: string): Promise<void> {
  await database.query(
    `UPDATE due_work SET due_at = CASE WHEN message_id = $1 THEN now() - interval '1 millisecond' ELSE 'infinity' END
     WHERE task = 'reconcile'`,
    [uuidOf(id)],
  )
}

/** Takes the next step of a message. @returns whether there was one to take */
export async function takeStep(database: TestDatabase, reconciler: Reconciler, id: string): Promise<boolean> {
  await makeStepDue(database, id)
  const { taken, done } = await reconciler.runOnce()
  await done
  return taken === 1
}

export async function alarmsOf({ deps }: TestGateway): Promise<Readonly<Record<string, number>>> {
  const { values } = await deps.metrics.alarms.get()
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels['alarm']), value]))
}
