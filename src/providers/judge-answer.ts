/**
 * What a call proves (engine.md, "Outcome of one attempt"). The engine's rules, with the provider's own codes for the
 * answers that were read; everything short of that is judged by the phase that http-outcome.ts reached.
 *
 * J1. A refusal needs the status and the provider's own documented error body: a bare status may come from a proxy that
 *     had already passed the request on.
 * J2. A 2xx is acceptance when its documented body was read, or by the status line alone where that is declared.
 * J3. Unlisted codes are shown as `unrecognised`, and refuse only as a plain 4xx.
 * J4. A look-up that was not answered as documented told nothing; it never finds and never proves an absence.
 */
import type { Capabilities } from '../core/capabilities.ts'
import type { Evidence, LookResult, Outcome } from '../core/outcome.ts'
import type { AnswerRules, CodeMeaning, CodeRule, HttpAnswer } from './provider.ts'

export type CallResult =
  /** With `refused`, the reason why this call will never be made, in a sentence of ours. */
  | { readonly phase: 'not_begun'; readonly code: string; readonly refused?: string }
  | { readonly phase: 'begun'; readonly code: string }
  | { readonly phase: 'answered'; readonly answer: HttpAnswer; readonly code: string | null }

/** @param at when the call was made, for pauses that end at a time of day */
export function judgeCall(
  result: CallResult,
  rules: AnswerRules,
  capabilities: Capabilities,
  at = new Date(),
): Outcome {
  switch (result.phase) {
    case 'not_begun':
      if (result.refused !== undefined)
        return { kind: 'rejected', evidence: { phase: 'not_begun', code: result.code, detail: result.refused } }
      return {
        kind: 'not_sent',
        reason: 'not_begun',
        retryAfterMs: null,
        evidence: { phase: 'not_begun', code: result.code, detail: 'No byte of the request left the gateway.' },
      }
    case 'begun':
      return {
        kind: 'unknown',
        evidence: { phase: 'begun', code: result.code, detail: 'The request had begun; no answer was read.' },
      }
    case 'answered':
      return judgeAnswer(result.answer, result.code, rules, capabilities, at)
  }
}

/** Answers that may have passed a message on although they are 4xx: never a refusal by the status alone. */
const ambiguousStatuses: readonly number[] = [408, 409, 425, 429]

function judgeAnswer(
  answer: HttpAnswer,
  cutBy: string | null,
  rules: AnswerRules,
  { acceptance, deduplication }: Capabilities,
  at: Date,
): Outcome {
  const { status, headers, retryAfterMs } = answer
  const body = bodyOf(answer)
  const evidence = (detail: string, more?: Partial<Evidence>): Evidence => ({
    phase: 'answered',
    httpStatus: status,
    ...(cutBy === null ? {} : { code: cutBy }),
    detail,
    ...more,
  })
  if (rules.isAccepted(status, body)) {
    const providerMessageId = readableId(rules.messageIdOf(body, headers))
    if (providerMessageId !== null)
      return { kind: 'accepted', providerMessageId, evidence: evidence('The provider accepted the message.') }
    if (acceptance === 'status')
      return {
        kind: 'accepted',
        providerMessageId: null,
        evidence: evidence('Accepted by its status line; no id was read from the body.'),
      }
    return { kind: 'unknown', evidence: evidence('A success without its documented body proves nothing.') }
  }
  const code = rules.errorCodeOf(body, status, headers)
  if (code === null)
    return {
      kind: 'unknown',
      retryAfterMs,
      evidence: evidence("Not the provider's own error body: it may come from in between."),
    }
  const listed = Object.hasOwn(rules.codes, code) ? rules.codes[code] : undefined
  const rule = listed?.statuses.includes(status) === true ? listed : undefined
  const told = evidence(rule?.wording ?? 'A code that the adapter does not know under this status.', {
    code: readableCode(code),
    ...(rule === undefined ? { unrecognised: true } : {}),
  })
  const means = rule?.means ?? unlisted(status, listed)
  switch (means) {
    case 'rejected':
      return { kind: means, evidence: told }
    case 'refused_for_now':
    case 'credentials':
      return {
        kind: 'not_sent',
        reason: means,
        retryAfterMs: retryAfterMs ?? rule?.pauseMs?.(at) ?? null,
        evidence: told,
      }
    case 'accepted_before':
      return { kind: 'accepted', providerMessageId: readableId(rules.messageIdOf(body, headers)), evidence: told }
    case 'key_in_use':
      return { kind: 'unknown', retryAfterMs, evidence: told }
    case 'key_reused':
      return { kind: 'unknown', isReplayPointless: true, isKeyConflict: true, evidence: told }
    case 'unknown': {
      const isStored = deduplication?.repeat === 'stored_failure' || deduplication?.repeat === 'conflict_is_ambiguous'
      return { kind: 'unknown', retryAfterMs, evidence: told, ...(isStored ? { isReplayPointless: true } : {}) }
    }
  }
}

/** A code that is listed, but under other statuses, is no plain refusal unless that is what it is listed as. */
function unlisted(status: number, listed: CodeRule | undefined): CodeMeaning {
  if (status === 401) return 'credentials'
  return isPlainRefusal(status) && (listed === undefined || listed.means === 'rejected') ? 'rejected' : 'unknown'
}

const isPlainRefusal = (status: number): boolean => status >= 400 && status < 500 && !ambiguousStatuses.includes(status)

/** @param read how the adapter reads the documented answer */
export function judgeLook(
  result: CallResult,
  read: (body: unknown) => { count: number; providerMessageId: string | null } | null,
): LookResult {
  if (result.phase !== 'answered')
    return {
      kind: 'failed',
      retryAfterMs: null,
      evidence: { phase: result.phase, code: result.code, detail: 'The look-up was not answered.' },
    }
  const { answer } = result
  const evidence = (detail: string): Evidence => ({ phase: 'answered', httpStatus: answer.status, detail })
  const shown = answer.status === 200 ? read(bodyOf(answer)) : null
  if (shown === null)
    return {
      kind: 'failed',
      retryAfterMs: answer.retryAfterMs,
      evidence: evidence('The look-up was not answered as documented.'),
    }
  if (shown.count === 0) return { kind: 'absent', evidence: evidence('The provider does not show it.') }
  const detail = shown.count === 1 ? 'The provider has it.' : `The provider has it ${shown.count} times.`
  return {
    kind: 'found',
    count: shown.count,
    providerMessageId: readableId(shown.providerMessageId),
    evidence: evidence(detail),
  }
}

const readableId = (told: string | null): string | null =>
  told !== null && /^[\x21-\x7e]{1,255}$/.test(told) ? told : null
const readableCode = (code: string): string => (/^[\w.:-]{1,64}$/.test(code) ? code : 'unreadable')

/** Undefined where it is cut or not JSON: then it is not the provider's documented body. */
function bodyOf({ body, complete }: HttpAnswer): unknown {
  if (!complete) return undefined
  try {
    return JSON.parse(body)
  } catch {
    return undefined // as above
  }
}
