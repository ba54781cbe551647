/**
 * What receipts make of a message: news of a provider that come by webhook, late, twice, in any order, or before our own
 * answer is stored. Only state-machine.ts calls it.
 *
 * E1. A receipt proves acceptance, also one of a failed delivery: what was unknown is sent, and what was said to be not sent
 *     is corrected. It never makes anything unsent.
 * E2. The delivery stands beside the status. Of two the later one counts, whichever came first; on a tie it was delivered.
 * E3. While a call runs it may still tell more: the proof is kept, and settles the message where the call does not.
 * E4. The same receipt again changes nothing.
 */
import {
  alarm,
  ignored,
  record,
  transition,
  type Changes,
  type Decision,
  type Effect,
  type On,
  type ReceiptEvent,
} from './events.ts'
import {
  openAttemptIds,
  type Delivery,
  type EndedAttempt,
  type Message,
  type Proof,
  type Resolution,
  type State,
} from './message.ts'

export function receipt(message: Message, event: ReceiptEvent): Decision {
  const { state } = message
  const line = record('receipt', event.at, event.attemptId, dataOf(event), event.lineId)
  const delivered = deliveryAfter(message.delivery, event)
  const delivery: Changes = delivered === message.delivery || delivered === null ? {} : { delivery: delivered }
  switch (state.status) {
    case 'held':
    case 'scheduled':
      return ignored('nothing of it was ever sent')
    case 'queued':
    case 'failed':
    case 'canceled':
      if (state.last === null) return ignored('nothing of it was ever sent')
      return settled(state.last, event, delivery, line, alarm('verdict_corrected'))
    case 'unknown':
      return settled(state.attempt, event, delivery, line, ...correction(message, event))
    case 'sending': {
      const { attemptId, providerMessageId, occurredAt: at } = event
      if (message.proof !== null && 'delivery' in delivery) return transition(state, delivery, line)
      if (message.proof !== null) return ignored('its acceptance is known already')
      return transition(state, { ...delivery, proof: { attemptId, providerMessageId, at } }, line)
    }
    case 'sent':
      return alsoOfSent(message, state, event, delivery, line)
  }
}

/** Told of an attempt of which it was said that it had not been accepted, while another one is open. */
const correction = (message: Message, { attemptId }: ReceiptEvent): Effect[] =>
  attemptId === null || openAttemptIds(message).includes(attemptId) ? [] : [alarm('verdict_corrected')]

function settled(
  attempt: EndedAttempt,
  { attemptId, providerMessageId, at }: ReceiptEvent,
  delivery: Changes,
  ...effects: Effect[]
): Decision {
  const resolution = byReceipt(attemptId ?? attempt.id, at)
  return transition({ status: 'sent', attempt, providerMessageId, sentAt: at }, { ...delivery, resolution }, ...effects)
}

const byReceipt = (attemptId: string, at: Date): Resolution => ({ by: 'receipt', at, attemptId, outcome: 'sent' })

function alsoOfSent(
  message: Message,
  state: Extract<State, { status: 'sent' }>,
  event: ReceiptEvent,
  delivery: Changes,
  line: Effect,
): Decision {
  const { providerMessageId } = event
  const known = state.providerMessageId
  if (known === null && providerMessageId !== null) return transition({ ...state, providerMessageId }, delivery, line)
  const doubled = isAnother(message, known, providerMessageId)
  if ('delivery' in delivery) return transition(state, delivery, line, ...(doubled ? [alarm('accepted_twice')] : []))
  return doubled
    ? ignored('the provider accepted it twice', line, alarm('accepted_twice'))
    : ignored('that is known already')
}

/** Two ids of the provider for one message: it has it twice. What a person wrote down is not taken at its letter. */
const isAnother = ({ resolution }: Message, known: string | null, told: string | null): boolean =>
  known !== null && told !== null && known !== told && resolution?.by !== 'operator'

/** The running attempt ended, and a receipt had come before: what all of it says together, if that is more than the call says. */
export function settledByProof(message: Message, ended: EndedAttempt, at: Date): Decision | null {
  const { proof, open } = message
  if (proof === null) return null
  const isOfThis = proof.attemptId === ended.id || (proof.attemptId === null && open.length === 0)
  // The call says no and the receipt says yes: somebody reads the provider's answer wrongly.
  const isCorrected = isOfThis && ended.outcome !== 'unknown'
  return transition(
    { status: 'sent', attempt: ended, providerMessageId: proof.providerMessageId, sentAt: at },
    { resolution: byReceipt(proof.attemptId ?? ended.id, at) },
    ...(isCorrected ? [alarm('verdict_corrected')] : []),
  )
}

/** The running attempt was accepted, and a receipt had come before: the same acceptance, or a second one. */
export function acceptedBeside(proof: Proof | null, providerMessageId: string | null) {
  const told = proof?.providerMessageId ?? null
  const isSecond = told !== null && providerMessageId !== null && told !== providerMessageId
  return { providerMessageId: providerMessageId ?? told, alarms: isSecond ? [alarm('accepted_twice')] : [] }
}

/** E2. What is known of the delivery with this receipt; the one that was known if it tells nothing new. */
function deliveryAfter(before: Delivery | null, { evidence, occurredAt: at, code }: On<'receipt'>): Delivery | null {
  if (evidence === 'accepted') return before
  const told: Delivery = { status: evidence, at, code }
  if (before === null || at > before.at) return told
  return at.getTime() === before.at.getTime() && evidence === 'delivered' && before.status !== evidence ? told : before
}

const dataOf = ({ provider, evidence, providerMessageId, code, occurredAt }: ReceiptEvent) => ({
  provider,
  evidence,
  providerMessageId,
  code,
  occurredAt,
})
