/**
 * What a person does to a message: approve, decline, give a verdict.
 *
 * C1. While an act on a message runs, no other begins: the second press of a double click is none.
 *     (A browser may still repeat a request by itself, on a connection that it reused and that ended: the gateway counts it once.)
 * C2. An act whose answer was lost is offered again as it was asked, fingerprint included: the gateway lets it count once.
 */
/** @import { Act, Answer, DecisionAsked, Message, VerdictAsked } from './types.ts' */
import { post } from './api.js'
import { lookNow } from './live.js'
import { signedOut } from './session.js'
import { change, keep, state } from './state.js'

/** The gateway waits 15 s for the outcome of what is approved. */
const patienceMs = 40_000

/** @param {string} id of the message @param {DecisionAsked} asked */
export async function decide(id, asked) {
  await act(state.decisions, id, asked, `/v1/messages/${encodeURIComponent(id)}/${asked.verb}`, {
    fingerprint: asked.fingerprint,
  })
}

/** @param {string} id of the message @param {VerdictAsked} asked */
export async function giveVerdict(id, asked) {
  await act(state.verdicts, asked.attempt, asked, `/v1/messages/${encodeURIComponent(id)}/resolve`, asked)
}

/**
 * @template Asked
 * @param {Map<string, Act<Asked>>} acts @param {string} name @param {Asked} asked @param {string} path @param {unknown} body
 */
async function act(acts, name, asked, path, body) {
  if (acts.get(name)?.phase === 'running') return
  const { session } = state
  acts.set(name, { asked, phase: 'running' })
  change()
  /** @type {Answer<Message>} */
  const answer = await post(path, body, patienceMs)
  if (state.session !== session) return // signed out meanwhile
  if (answer.kind === 'refused' && answer.problem.status === 401) return signedOut(answer.problem)
  if (answer.kind === 'ok') {
    acts.set(name, { asked, phase: 'done' })
    keep(answer.body)
  } else if (answer.kind === 'lost') acts.set(name, { asked, phase: 'lost', why: answer.why })
  else acts.set(name, { asked, phase: 'refused', problem: answer.problem })
  change()
  lookNow()
}
