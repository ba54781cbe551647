/** The lines of a message's time line in words. What has no words here is shown by its name and its data, not left out. */
/** @import { TimelineEntry } from './types.ts' */
import { visible } from './words.js'

/** @typedef {Readonly<Record<string, unknown>>} Data */

/** @param {Data} data @param {string} name */
const word = (data, name) => {
  const value = data[name]
  return value === undefined || value === null ? '' : visible(typeof value === 'object' ? JSON.stringify(value) : value)
}

/** @param {Data} data */
const attempt = (data) => (word(data, 'number') === '' ? 'The attempt' : `Attempt ${word(data, 'number')}`)
/** @param {Data} data */
const provider = (data) => word(data, 'provider') || 'the provider'
/** @param {Data} data */
const by = (data) => {
  const who = word(data, 'apiKey') || word(data, 'by')
  return who === '' ? '' : ` by key ${who}`
}

/** @type {Record<string, (data: Data) => string>} */
const outcomes = {
  accepted: (data) => `${attempt(data)}: ${provider(data)} accepted it.`,
  rejected: (data) => `${attempt(data)}: ${provider(data)} refused it for good.`,
  not_sent: (data) => `${attempt(data)} did not reach ${provider(data)}, or was refused for now: not sent.`,
  unknown: (data) => `${attempt(data)} ended without an answer to rely on: ${provider(data)} may have it.`,
}

/** @type {Record<string, string>} */
const looks = {
  found: 'The provider was asked, and has it.',
  doubled: 'The provider was asked, and has it more than once.',
  absent: 'The provider was asked, and does not show it.',
  failed: 'The provider was asked, and told nothing.',
}

/** @type {Record<string, string>} */
const warrants = {
  key: 'the provider knows our key and takes it once',
  absent: 'the provider was shown not to have it',
  operator: 'a person said so',
}

/** @type {Record<string, string>} */
const resolvers = {
  operator: 'a person',
  lookup: 'a look-up',
  receipt: 'a receipt of the provider',
  late_answer: 'a late answer of the provider',
  provider_replay: 'a repeat under the same key of the provider',
}

/** @type {Record<string, string>} */
const receipts = {
  accepted: 'A receipt came: the provider accepted it.',
  delivered: 'A receipt came: delivered.',
  undelivered: 'A receipt came: not delivered.',
}

/** @type {Record<string, (data: Data) => string>} */
const lines = {
  claimed: () => 'Asked for, and its key claimed.',
  held: (data) => `Held for a person${word(data, 'reason') === 'duplicate' ? ': it may be a duplicate' : ''}.`,
  approved: (data) => `Approved${by(data)}.`,
  declined: (data) => `Declined${by(data)}: it is not sent.`,
  lapsed: () => 'Nobody decided in time: it is not sent.',
  conversation_changed: () => 'The conversation had moved on: it is not sent.',
  attempt_started: (data) => `${attempt(data)} began, through ${provider(data)}.`,
  attempt_ended: (data) => outcomes[word(data, 'outcome')]?.(data) ?? `${attempt(data)} ended.`,
  late_outcome: (data) => `Late news of an earlier attempt: ${word(data, 'outcome').replace('_', ' ')}.`,
  lease_lapsed: () => 'Nobody saw the attempt end in time: the provider may have it.',
  warranted: (data) => `Another attempt is safe: ${warrants[word(data, 'warrant')] ?? word(data, 'warrant')}.`,
  looked: (data) => looks[word(data, 'result')] ?? 'The provider was asked.',
  receipt: (data) => receipts[word(data, 'evidence')] ?? 'A receipt came.',
  gave_up: () => 'The gateway has no further step of its own: it waits for evidence, or for a person.',
  expired: () => 'Its time was over before a provider had accepted it.',
  canceled: (data) => `Canceled${by(data)}.`,
  resolved: (data) => {
    const outcome = word(data, 'outcome') === 'sent' ? 'sent' : 'not sent'
    const again = data['resend'] === true ? ', to be sent again' : ''
    const key = word(data, 'apiKey')
    return `Settled by ${resolvers[word(data, 'by')] ?? word(data, 'by')}${key === '' ? '' : ` (key ${key})`}: ${outcome}${again}.`
  },
}

/** What the sentences above have said already. */
const told = new Set([
  'number',
  'provider',
  'outcome',
  'result',
  'warrant',
  'apiKey',
  'by',
  'resend',
  'reason',
  'startedAt',
])
/** @type {Record<string, string>} */
const phases = { not_begun: 'nothing left the gateway', begun: 'the request had begun', answered: 'it answered' }

/** @param {TimelineEntry} entry */
export const sentence = ({ type, data }) => lines[type]?.(data) ?? `${visible(type).replaceAll('_', ' ')}.`

/** What showed it. @param {TimelineEntry} entry */
export function evidence({ type, data }) {
  const { phase, httpStatus, code, detail, ...rest } = data
  const others = Object.entries(rest).filter(
    ([name, value]) =>
      value !== null && (lines[type] === undefined || !(told.has(name) || (type === 'receipt' && name === 'evidence'))),
  )
  return [
    typeof phase === 'string' && (phases[phase] ?? visible(phase)),
    httpStatus !== undefined && `HTTP ${word(data, 'httpStatus')}`,
    code !== undefined && code !== null && `code ${word(data, 'code')}`,
    detail !== undefined && word(data, 'detail'),
    ...others.map(([name]) =>
      name === 'evidence' ? `“${word(data, name)}”` : `${visible(name)}: ${word(data, name)}`,
    ),
  ]
    .filter((part) => part !== false && part !== '')
    .join(' · ')
}
