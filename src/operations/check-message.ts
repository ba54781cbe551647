/**
 * POST /v1/messages/check: what would become of a send, without claiming anything. The same questions in the same order as
 * send-message.ts asks them, answered from what is read; a moment later it may be otherwise.
 *
 * K1. Nothing is written, and no provider hears of it.
 */
import { contentHash } from '../core/conversation.ts'
import { canonicalText } from '../core/fingerprint.ts'
import { keySource } from '../core/idempotency.ts'
import type { MessageRequest } from '../core/message-content.ts'
import type { HeldReason, ShownMessage } from '../core/message.ts'
import { messageReference } from '../core/message-view.ts'
import { problemBody, type ProblemBody } from '../core/problems.ts'
import { smsLength, type SmsLength } from '../core/sms-length.ts'
import type { Deps } from '../deps.ts'
import type { FoundKey } from '../store/read-messages.ts'
import { heldFor, movedOn, planNew, possibleDuplicate, type Names, type SendRequest } from './plan-message.ts'
import { Refusal } from './refusal.ts'
import { repeatOf } from './repeat-of.ts'

type Reference = ReturnType<typeof messageReference>

export interface Checked {
  readonly verdict: 'send' | 'schedule' | 'hold' | 'repeat' | 'refuse'
  /** In one sentence. */
  readonly reason: string
  readonly problem: ProblemBody | null
  readonly key: { readonly key: string; readonly source: string; readonly message: Reference | null }
  readonly provider: string | null
  readonly conversation: {
    readonly conversation: string
    readonly version: number
    readonly matches: boolean | null
  } | null
  readonly intent: { readonly intent: string; readonly message: Reference | null } | null
  readonly duplicate: { readonly mode: string; readonly message: Reference | null }
  readonly approval: { readonly required: boolean; readonly reason: HeldReason | null }
  readonly text: SmsLength | null
}

/** @param instance URI of this occurrence, for a problem that is shown */
export async function checkMessage(deps: Deps, asked: SendRequest, names: Names, instance: string): Promise<Checked> {
  const { request, scope, sender } = asked
  const found = await deps.store.findKey(scope, names)
  const plan = planNew(deps, asked, names)
  const conversation = await conversationOf(deps, asked, plan instanceof Refusal ? null : plan.ifVersion)
  const intent = await intentOf(deps, asked)
  const { mode } = sender.policy.duplicateGuard
  const second = mode === 'off' ? undefined : await secondOf(deps, asked)
  const wanted = await heldFor(deps, asked)
  const held: HeldReason | null = wanted ?? (second !== undefined && mode === 'hold' ? 'duplicate' : null)
  const refusal =
    plan instanceof Refusal
      ? plan
      : conversation?.matches === false
        ? await movedOn(deps, asked, 'no')
        : intent?.first !== undefined
          ? possibleDuplicate(intent.first, 'intent', 'no')
          : second !== undefined && mode === 'refuse' && wanted === null
            ? possibleDuplicate(second, 'content', 'no')
            : null
  const isLater = !(plan instanceof Refusal) && plan.times.sendAt !== null
  const ends = found === undefined ? afterwards(isLater, held, refusal) : asRepeat(request, found)
  return {
    verdict: ends.verdict,
    reason: ends.reason,
    problem:
      ends.refusal === null ? null : problemBody(ends.refusal.type, instance, ends.refusal.detail, ends.refusal.extras),
    key: {
      key: names[0],
      source: keySource(names[0]),
      message: found?.kind === 'message' ? messageReference(found.message) : null,
    },
    provider: plan instanceof Refusal ? null : plan.provider.name,
    conversation,
    intent: intent === null ? null : { intent: intent.intent, message: referenceOf(intent.first) },
    duplicate: { mode, message: referenceOf(second) },
    approval: { required: held !== null, reason: held },
    text: request.channel === 'sms' ? smsLength(request.content.text) : null,
  }
}

interface End {
  readonly verdict: Checked['verdict']
  readonly reason: string
  readonly refusal: Refusal | null
}

function afterwards(isLater: boolean, held: HeldReason | null, refusal: Refusal | null): End {
  if (refusal !== null) return { verdict: 'refuse', reason: 'It would be refused: `problem` says why.', refusal }
  if (held === 'approval') return { verdict: 'hold', reason: 'It would wait for a person to approve it.', refusal }
  if (held === 'duplicate')
    return {
      verdict: 'hold',
      reason: 'It looks like a message of a short while ago, and would wait for a person.',
      refusal,
    }
  return isLater
    ? { verdict: 'schedule', reason: 'It would be sent at its time.', refusal }
    : { verdict: 'send', reason: 'It would be sent at once.', refusal }
}

function asRepeat(request: MessageRequest, found: FoundKey): End {
  try {
    const { state } = repeatOf(found, canonicalText(request))
    return {
      verdict: 'repeat',
      reason: `This key has a message already, which is ${state.status}; nothing more would be sent.`,
      refusal: null,
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { verdict: 'refuse', reason: 'This key is taken: `problem` says by what.', refusal: error }
  }
}

async function conversationOf(deps: Deps, { scope, request }: SendRequest, ifVersion: number | null) {
  const { conversation } = request
  if (conversation === undefined) return null
  const { version } = await deps.store.findConversation(scope, conversation)
  return { conversation, version, matches: ifVersion === null ? null : ifVersion === version }
}

async function intentOf(deps: Deps, { scope, request }: SendRequest) {
  const { intent } = request
  return intent === undefined ? null : { intent, first: await deps.store.findByIntent(scope, intent) }
}

/** The message that the guard would take this one for a second of. */
async function secondOf(deps: Deps, { scope, request, sender }: SendRequest): Promise<ShownMessage | undefined> {
  const { windowSeconds } = sender.policy.duplicateGuard
  const id = await deps.store.findFirstOfContent(scope, request.to, contentHash(request), windowSeconds)
  return id === undefined ? undefined : (await deps.store.findMessages([id]))[0]
}

const referenceOf = (message: ShownMessage | undefined): Reference | null =>
  message === undefined ? null : messageReference(message)
