/** One message: what it says, the conversation around it, what a person can do, everything that is known, its time line. */
/** @import { Detail, ListName, Message } from './types.ts' */
/** @import { Child } from './dom.js' */
import { contentOf } from './content.js'
import { h } from './dom.js'
import { keyboardHome } from './keyboard.js'
import { hashOf, messageHash } from './route.js'
import { state } from './state.js'
import { evidence, sentence } from './timeline.js'
import { conversationOf, movedNotice } from './view-conversation.js'
import { decisionOf, heldBecause } from './view-decision.js'
import { keyName, missing } from './view-frame.js'
import { planOf, verdictsOf } from './view-verdict.js'
import { channelName, moment, reasonOf, statusChip, visible } from './words.js'

const backTo = { held: 'Held messages', unknown: 'Unknown outcomes', message: 'Back' }

/** @param {string} id @param {ListName | 'message'} from @returns {Child} */
export function messageView(id, from) {
  const message = state.messages.get(id)
  const detail = state.detail?.id === id ? state.detail : null
  const home = from === 'message' ? keyboardHome() : hashOf({ view: from, id: null })
  return h(
    'article',
    {
      key: `message ${id}`,
      class: from === 'message' ? 'message single' : 'message',
      'aria-labelledby': 'message-title',
    },
    from === 'message' && h('h1', { class: 'unseen' }, 'Message'),
    h('p', { class: 'back' }, h('a', { href: home }, `← ${backTo[from]}`)),
    h(
      'header',
      { class: 'message-head' },
      h(
        'h2',
        { key: 'heading', id: 'message-title', tabindex: -1 },
        message === undefined ? 'Message' : [`${channelName(message.channel)} to `, h('bdi', {}, visible(message.to))],
      ),
      message !== undefined && statusChip(message),
    ),
    detail?.refused !== null && detail?.refused !== undefined && missing(detail.refused),
    message === undefined && detail?.refused === null && h('p', { class: 'quiet' }, 'Reading…'),
    message !== undefined && parts(message, detail),
  )
}

/** @param {Message} message @param {Detail | null} detail @returns {Child} */
const parts = (message, detail) => [
  heldBecause(message),
  h('div', { key: 'moved' }, movedNotice(message, detail)),
  h('section', { key: 'content' }, h('h3', {}, 'What it says'), h('div', { class: 'content' }, contentOf(message))),
  h('div', { key: 'conversation' }, conversationOf(message, detail)),
  message.approval !== null &&
    h('div', { key: 'decision', class: message.status === 'held' ? 'act sticky' : 'act' }, decisionOf(message, detail)),
  message.status === 'unknown' && [h('div', { key: 'plan' }, planOf(message)), verdictsOf(message, detail)],
  h('section', { key: 'time line' }, h('h3', {}, 'Time line'), timeLine(detail)),
  h('section', { key: 'facts' }, h('h3', {}, 'Everything else'), facts(message)),
]

/** @param {Detail | null} detail */
const timeLine = (detail) =>
  detail === null || detail.events === null
    ? h('p', { class: 'quiet' }, 'Reading…')
    : h(
        'ol',
        { class: 'time-line' },
        detail.events.map((entry) =>
          h(
            'li',
            { key: entry.id },
            h('span', { class: 'quiet' }, moment(entry.at)),
            h('span', {}, sentence(entry)),
            h('span', { class: 'quiet', dir: 'auto' }, evidence(entry)),
          ),
        ),
      )

/** @param {Message} message */
function facts(message) {
  const { delivery, resolution, metadata } = message
  /** @type {[string, Child][]} */
  const rows = [
    ['Status', [statusChip(message), ` ${reasonOf(message)}`]],
    ['Recipient', visible(message.to)],
    ['Sender', message.from === null ? null : visible(message.from)],
    ['Asked for by', keyName(message.sentBy)],
    ['Asked for', moment(message.createdAt)],
    ['Last change', moment(message.updatedAt)],
    ['Goes out', message.sendAt === null ? null : moment(message.sendAt)],
    ['Never after', moment(message.notAfter)],
    ['Sent', message.sentAt === null ? null : moment(message.sentAt)],
    [
      'Delivery',
      delivery === null
        ? null
        : [
            `${delivery.status}${delivery.code === null ? '' : `, code ${visible(delivery.code)}`}, `,
            moment(delivery.at),
          ],
    ],
    [
      'Settled',
      resolution === null
        ? null
        : [
            `${resolution.outcome.replace('_', ' ')}, by ${resolution.apiKey === null ? resolution.by.replaceAll('_', ' ') : keyName(resolution.apiKey)}, `,
            moment(resolution.at),
            resolution.evidence !== null && `: “${visible(resolution.evidence)}”`,
          ],
    ],
    ['Provider', visible(message.provider)],
    ["Provider's id", message.providerMessageId === null ? null : visible(message.providerMessageId)],
    ['Attempts', String(message.attempts)],
    [
      'Conversation',
      message.conversation === null
        ? null
        : [
            visible(message.conversation),
            message.conversationVersion !== null &&
              h('span', { class: 'quiet' }, ` written at version ${message.conversationVersion}`),
          ],
    ],
    [
      'Reference',
      message.reference === null
        ? null
        : h(
            'a',
            { href: hashOf({ view: 'search', by: 'reference', value: message.reference, id: null }) },
            visible(message.reference),
          ),
    ],
    ['Intent', message.intent === null ? null : visible(message.intent)],
    [
      'Idempotency key',
      [visible(message.idempotencyKey), message.keySource === 'derived' && h('span', { class: 'quiet' }, ' derived')],
    ],
    [
      'Possible duplicate of',
      message.possibleDuplicateOf === null
        ? null
        : h('a', { href: messageHash(message.possibleDuplicateOf) }, message.possibleDuplicateOf),
    ],
    ...Object.entries(metadata).map(
      ([name, value]) => /** @type {[string, Child]} */ ([`Metadata ${visible(name)}`, visible(value)]),
    ),
    ['Fingerprint', message.fingerprint],
    ['Id', message.id],
  ]
  return h(
    'dl',
    { class: 'facts' },
    rows
      .filter(([, value]) => value !== null)
      .map(([name, value]) => h('div', { key: name }, h('dt', {}, name), h('dd', { dir: 'auto' }, value))),
  )
}
