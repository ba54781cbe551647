/** Approve and decline, and what came of it: by this reader, in another tab, or by somebody else. */
/** @import { DecisionAsked, Detail, Message, Problem } from './types.ts' */
/** @import { Child } from './dom.js' */
import { decide } from './acts.js'
import { gist } from './content.js'
import { h } from './dom.js'
import { hashOf, messageHash } from './route.js'
import { state } from './state.js'
import { hasMoved } from './view-conversation.js'
import { keyName } from './view-frame.js'
import { ago, moment, passed, reasonOf, statusChip, visible } from './words.js'

/** @param {Message} message @returns {Child} */
export function heldBecause({ status, approval, sentBy, notAfter, possibleDuplicateOf }) {
  if (status !== 'held') return null
  const first = state.messages.get(possibleDuplicateOf ?? '')
  return h(
    'div',
    { key: 'because', class: 'because' },
    h(
      'p',
      {},
      approval?.reason === 'duplicate'
        ? 'Held because it may be a duplicate. '
        : 'Held because this key needs approval. ',
      'Asked for by ',
      h('bdi', {}, keyName(sentBy)),
      '. Lapses ',
      ago(notAfter),
      ' and is not sent then.',
    ),
    possibleDuplicateOf !== null &&
      h(
        'div',
        { class: 'notice warn' },
        h(
          'p',
          {},
          h('strong', {}, 'May say again what was said: '),
          h('a', { href: messageHash(possibleDuplicateOf) }, 'the first message'),
          first !== undefined && [', ', ago(first.createdAt), ' ', statusChip(first)],
        ),
        first !== undefined && h('p', { class: 'item-gist', dir: 'auto' }, gist(first)),
      ),
  )
}

/** @param {Message} message @param {Detail | null} detail @returns {Child} */
export function decisionOf(message, detail) {
  const act = state.decisions.get(message.id)
  const isHeld = message.status === 'held'
  const isOwn = message.sentBy === state.session?.keyId
  return [
    h('h3', { key: 'title', class: 'unseen' }, 'Decision'),
    h(
      'div',
      { key: 'said', role: 'status', tabindex: -1, 'data-outcome': true },
      isHeld && act?.phase === 'lost' && lost(message, act.asked, act.why ?? ''),
      act?.phase === 'refused' && act.problem !== undefined && refusal(act.problem),
      !isHeld && outcome(message),
    ),
    isHeld && [
      isOwn && h('p', { key: 'own' }, 'You asked for this message with this very key: somebody else has to decide.'),
      passed(message.notAfter) && h('p', { key: 'over' }, 'Its time is over: it can no longer be approved.'),
      act?.phase !== 'lost' &&
        buttons(message, act?.phase === 'running' ? act.asked.verb : null, isOwn, hasMoved(message, detail)),
    ],
  ]
}

/** @param {Message} message @param {'approve' | 'decline' | null} running @param {boolean} isOwn @param {boolean} moved */
function buttons({ id, fingerprint }, running, isOwn, moved) {
  /** @param {'approve' | 'decline'} verb @param {string} name @param {string} meanwhile @param {boolean} isMain */
  const button = (verb, name, meanwhile, isMain) =>
    h(
      'button',
      {
        key: verb,
        type: 'button',
        class: isMain ? 'main' : 'other',
        disabled: running !== null || isOwn,
        onclick: () => void decide(id, { verb, fingerprint }),
      },
      running === verb ? meanwhile : name,
    )
  return h(
    'div',
    { key: 'buttons', class: 'row' },
    button('approve', 'Approve', 'Approving…', !moved),
    button('decline', 'Decline', 'Declining…', false),
    moved && h('span', { class: 'quiet' }, 'The conversation has moved on: approving cancels it.'),
  )
}

/** @param {Message} message @param {DecisionAsked} asked @param {string} why */
function lost({ id, fingerprint }, asked, why) {
  const isApproval = asked.verb === 'approve'
  const otherwise = isApproval ? 'decline' : 'approve'
  return h(
    'div',
    { class: 'notice warn' },
    h(
      'p',
      {},
      h('strong', {}, `${why} `),
      `Whether the message was ${isApproval ? 'approved' : 'declined'} is not known here.`,
    ),
    h('p', {}, 'To ask the same again is safe: it counts once, and leads to one send at most.'),
    h(
      'div',
      { class: 'row' },
      h('button', { type: 'button', class: 'main', onclick: () => void decide(id, asked) }, `Repeat: ${asked.verb}`),
      h(
        'button',
        { type: 'button', onclick: () => void decide(id, { verb: otherwise, fingerprint }) },
        isApproval ? 'Decline instead' : 'Approve instead',
      ),
    ),
  )
}

/** @type {Readonly<Record<string, string>>} */
const refusals = {
  'fingerprint-mismatch':
    'You were shown another message than the one that stands there now. Read it again, then decide.',
  'too-late': 'It is too late: the message was canceled, or its time is over.',
  'not-held': 'The message was never held; there is nothing to decide.',
}

/** @param {Problem} problem @returns {Child} */
function refusal({ type, status, title, detail, decision }) {
  if (type === 'already-decided' && decision !== undefined && 'decision' in decision)
    return h(
      'p',
      { class: 'notice warn' },
      h('strong', {}, `It was ${decision.decision} already`),
      ` by `,
      h('bdi', {}, keyName(decision.by)),
      ', ',
      ago(decision.at),
      '. That stands; what you pressed changed nothing.',
    )
  return h(
    'p',
    { class: 'notice bad' },
    h('strong', {}, 'Nothing was decided. '),
    status === 403 ? `This key may not decide it. ${detail}` : (refusals[type] ?? `${title}. ${detail}`),
  )
}

/** @param {Message} message @returns {Child} */
function outcome(message) {
  const { approval, status } = message
  if (approval === null) return null
  const { status: decided, by, at } = approval
  if (decided === 'pending' || decided === 'ended')
    return h('p', { class: 'notice' }, h('strong', {}, 'Nobody decided. '), reasonOf(message))
  const isWell = decided === 'declined' || ['sent', 'sending', 'queued', 'scheduled'].includes(status)
  return h(
    'p',
    { class: `notice ${isWell ? 'good' : 'warn'}` },
    h('strong', {}, decided === 'approved' ? 'Approved' : 'Declined'),
    ' by ',
    h('bdi', {}, keyName(by)),
    at !== null && [', ', ago(at)],
    '. ',
    decided === 'approved' ? became(message) : 'It is not sent.',
  )
}

/** @param {Message} message @returns {Child} */
function became(message) {
  const { id, status, sentAt, sendAt } = message
  if (status === 'sent') return sentAt === null ? 'It was sent.' : ['It was sent, ', moment(sentAt), '.']
  if (status === 'scheduled') return sendAt === null ? 'It goes out later.' : ['It goes out ', moment(sendAt), '.']
  if (status === 'unknown')
    return [
      'The answer of the provider was lost: ',
      h('a', { href: hashOf({ view: 'unknown', id }) }, 'whether it was sent is unknown'),
      '.',
    ]
  if (status === 'failed' || status === 'canceled') return `It was not sent. ${visible(reasonOf(message))}`
  return 'It is being sent.'
}
