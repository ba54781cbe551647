/**
 * A vendor as a gateway reaches it: connecting, the write gate, the first byte, the answer; each step an event of the
 * gateway's process, so that it may die or be stopped between any two. What was written travels on whatever becomes of
 * its gateway. Answers are judged by the real rules (src/providers/judge-answer.ts).
 *
 * A gateway may be stopped in the instant between the gate and the write, for less than the margins that are declared for
 * it; longer is what the README names as the risk that remains. Not played: proxies that deliver one request twice.
 */
import type { LookResult, Outcome } from '../../src/core/outcome.ts'
import { judgeCall, judgeLook, type CallResult } from '../../src/providers/judge-answer.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { never } from './connection.ts'
import { readTold } from './receipts.ts'
import { rules, shownIn } from './vendor-kinds.ts'
import type { Reply, Vendor, Write } from './vendor.ts'
import type { Process, World } from './world.ts'

const connectTimeoutMs = 1_000
const answerTimeoutMs = 2_000
/** Less than the margin of a key without what travels; and less than the ten leases after which an absence counts. */
const maxStallMs = ({ capabilities }: Vendor): number => (capabilities.deduplication === null ? 25_000 : 5_000)

export interface NetworkMoods {
  /** Connections that are refused, or never come. */
  unconnected: number
  /** Answers that are lost, cut or late. */
  unanswered: number
  /** Adapters that throw: a bug of ours. */
  buggy: number
  /** Gateways that are stopped in the moment of the write. */
  stalled: number
}

export interface Route {
  readonly world: World
  readonly process: Process
  readonly vendor: Vendor
  /** Our account there; another one after a change of credentials. */
  readonly account: number
  readonly network: NetworkMoods
  readonly concurrency: number
  /** What a message is about, by its public id. */
  readonly eventOf: (messageId: string) => string
  readonly reaches: () => boolean
  /** Stops the gateway at once. */
  readonly stop: (ms: number) => void
  readonly writeBegins: (write: Write, process: Process) => void
}

interface Call {
  readonly result: Promise<CallResult>
  /** Set when the first byte leaves. */
  readonly write: () => Write | null
}

/** The bytes leave now, or when the gateway goes on. */
function leave({ world, process, vendor, network, stop }: Route, written: Write, go: () => void): void {
  if (!world.chance.happens(network.stalled)) return go()
  const ms = world.chance.between(100, maxStallMs(vendor))
  if (world.chance.happens(0.5)) {
    world.sometimes('a gateway was stopped while its request travelled')
    go()
    return stop(ms)
  }
  world.sometimes('a gateway was stopped between the gate and the write')
  stop(ms + 1) // the write is the first that it does then
  world.after(ms, () => {
    if (process.isAlive()) go()
    else written.fate = 'lost'
  })
}

/** @param arrive is called at the vendor's, with the way back */
function call(
  route: Route,
  begin: () => Write | null,
  arrive: (write: Write | null, back: (reply: Reply) => void) => void,
): Call {
  const { world, process, network } = route
  const { chance } = world
  let written: Write | null = null
  const result = new Promise<CallResult>((resolve) => {
    let ended = false
    let cancelTimer = (): void => {}
    const end = (told: CallResult): void => {
      if (ended) return
      ended = true
      cancelTimer()
      resolve(told)
    }
    cancelTimer = process.after(connectTimeoutMs, () => end({ phase: 'not_begun', code: 'connect time-out' }))
    if (chance.happens(network.unconnected)) {
      if (chance.happens(0.5))
        process.after(chance.between(1, 50), () => end({ phase: 'not_begun', code: 'ECONNREFUSED' }))
      return
    }
    process.after(chance.happens(0.8) ? chance.between(1, 20) : chance.between(1, connectTimeoutMs), () => {
      if (ended) return
      written = begin()
      if (written === null) return end({ phase: 'not_begun', code: 'write gate shut' })
      cancelTimer()
      // After a stop the answer that lies there is read first (http-outcome.ts).
      const timeOut = (): void => end({ phase: 'begun', code: 'answer time-out' })
      cancelTimer = process.after(answerTimeoutMs, () => process.after(1, timeOut))
      if (chance.happens(network.unanswered / 3))
        process.after(chance.between(1, 500), () => end({ phase: 'begun', code: 'UND_ERR_SOCKET' }))
      leave(route, written, () =>
        arrive(written, ({ status, body }) => {
          if (chance.happens(network.unanswered / 3)) return
          const complete = !chance.happens(network.unanswered / 3)
          const text = typeof body === 'string' ? body : JSON.stringify(body)
          const answer = {
            status,
            headers: {},
            body: complete ? text : text.slice(0, -1),
            complete,
            retryAfterMs: null,
          }
          process.after(chance.happens(0.8) ? chance.between(1, 50) : chance.between(1, answerTimeoutMs), () =>
            end({ phase: 'answered', answer, code: complete ? null : 'UND_ERR_SOCKET' }),
          )
        }),
      )
    })
  })
  return { result, write: () => written }
}

export function simulatedProvider(route: Route): Provider {
  const { world, process, vendor, account, network, concurrency, eventOf, reaches, writeBegins } = route
  const identity = `${vendor.name}, account ${account}`
  return {
    name: vendor.name,
    adapter: vendor.name,
    environment: 'live',
    capabilities: vendor.capabilities,
    identity,
    callMs: connectTimeoutMs + answerTimeoutMs,
    concurrency,
    limitBroken: () => null,
    render: ({ to, content }, { messageId }) => JSON.stringify({ messageId, to, content }),
    send: async (message, attempt, gate, rendered): Promise<Outcome> => {
      if (!reaches()) {
        world.sometimes('a gateway died between the claim and the call')
        return never()
      }
      const { channel, content, to } = message
      if (channel !== 'sms') throw new Error('only text messages are simulated')
      const { messageId, attemptId, attemptNumber } = attempt
      const begin = (): Write | null => {
        if (!gate()) {
          world.sometimes('the write gate was shut')
          return null
        }
        const write: Write = {
          event: eventOf(messageId),
          messageId,
          attempt: attemptNumber,
          attemptId,
          vendor,
          identity,
          body: rendered ?? JSON.stringify({ messageId, to, content, attemptNumber }),
          beganMs: world.now(),
          fate: 'travels',
          refusalRead: false,
          providerId: null,
        }
        world.note(
          process.name,
          () => `WRITES attempt ${attemptNumber} of ${messageId} (${eventOf(messageId)}) to ${vendor.name}`,
        )
        writeBegins(write, process)
        return write
      }
      const { result, write } = call(route, begin, (written, back) => {
        if (written !== null) vendor.receive(written, back)
      })
      const outcome = judgeCall(await result, rules, vendor.capabilities)
      const { chance } = world
      if (chance.happens(network.buggy)) throw new Error('simulated: an adapter has a bug')
      const written = write()
      if (written !== null && (outcome.kind === 'rejected' || outcome.kind === 'not_sent')) written.refusalRead = true
      world.note(
        process.name,
        () =>
          `attempt ${attemptNumber} of ${messageId} ended: ${outcome.kind}, ${outcome.evidence.code ?? outcome.evidence.phase}`,
      )
      if (outcome.kind === 'unknown' && written?.fate === 'accepted')
        world.sometimes('the reply of an acceptance was lost')
      return outcome
    },
    look: async (_, { messageId }): Promise<LookResult> => {
      if (!reaches()) return never()
      const question = {} as Write
      const { result } = call(
        route,
        () => question,
        (__, back) => void world.after(world.chance.between(1, 100), () => back(vendor.look(identity, messageId))),
      )
      const told = judgeLook(await result, shownIn)
      world.note(process.name, () => `looked for ${messageId} at ${vendor.name}: ${told.kind}`)
      if (told.kind === 'found') world.sometimes('a look-up found what was sent')
      return told
    },
    parseWebhook: ({ rawBody }) => readTold(rawBody),
    close: async () => {},
  }
}
