/** What each view reads of /v1, and where it is kept. Each reading throws `RoundFailed` if nothing was learnt. */
/** @import { Answer, ConversationPage, Entry, KeyState, ListName, Message, Page, Problem, SearchBy, TimelineEntry } from './types.ts' */
import { announceHeld } from './announce.js'
import { read } from './api.js'
import { change, keep, state } from './state.js'

const pageSize = 100
/** More than these are not decided by looking at a list. */
const pagesAtMost = 3
const entriesAtOnce = 30

export class RoundFailed extends Error {
  /** @param {string} why @param {number | null} retryAfterMs @param {Problem | null} problem */
  constructor(why, retryAfterMs, problem) {
    super(why)
    this.retryAfterMs = retryAfterMs
    this.problem = problem
  }
}

/**
 * What the answer says, or why it was refused.
 * @template T
 * @param {Answer<T>} answer @param {AbortSignal} signal
 * @returns {{ body: T, problem: null } | { body: null, problem: Problem }}
 */
function told(answer, signal) {
  if (signal.aborted) throw new RoundFailed('It is not wanted any more.', null, null)
  if (answer.kind === 'ok') return { body: answer.body, problem: null }
  if (answer.kind === 'lost') throw new RoundFailed(answer.why, answer.retryAfterMs, null)
  if (answer.problem.status === 401) throw new RoundFailed(answer.problem.title, null, answer.problem)
  return { body: null, problem: answer.problem }
}

/** @param {ListName} name @param {AbortSignal} signal */
export async function readList(name, signal) {
  const { messages, hasMore, refused } = await readMessages(`status=${name}`, pagesAtMost, signal)
  const list = state.lists[name]
  list.refused = refused
  if (refused === null) {
    const before = list.ids === null ? null : new Set(list.ids)
    list.ids = messages.map(({ id }) => id).toReversed()
    list.hasMore = hasMore
    if (name === 'held' && before !== null) announceHeld(messages.filter(({ id }) => !before.has(id)))
  }
  change()
}

/** @param {string} query @param {number} pages @param {AbortSignal} signal */
async function readMessages(query, pages, signal) {
  /** @type {Message[]} */
  const messages = []
  /** @type {string | null} */
  let cursor = null
  for (let page = 0; page < pages; page++) {
    /** @type {string} */
    const from = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    /** @type {Answer<Page<Message>>} */
    const answer = await read(`/v1/messages?${query}&limit=${pageSize}${from}`, signal)
    const { body, problem } = told(answer, signal)
    if (body === null) return { messages: [], hasMore: false, refused: problem }
    body.data.forEach(keep)
    messages.push(...body.data)
    cursor = body.nextCursor
    if (cursor === null) break
  }
  return { messages, hasMore: cursor !== null, refused: null }
}

/** @param {string} id @param {AbortSignal} signal */
export async function readDetail(id, signal) {
  if (state.detail?.id !== id)
    state.detail = { id, events: null, conversation: null, refused: null, conversationRefused: null }
  const { detail } = state
  const path = `/v1/messages/${encodeURIComponent(id)}`
  /** @type {[Answer<Message>, Answer<{ data: readonly TimelineEntry[] }>]} */
  const [asked, events] = await Promise.all([read(path, signal), read(`${path}/events`, signal)])
  const message = told(asked, signal)
  detail.refused = message.problem
  if (message.body !== null) keep(message.body)
  detail.events = told(events, signal).body?.data ?? detail.events
  change()
  const { conversation = null, possibleDuplicateOf = null } = message.body ?? {}
  await Promise.all([
    conversation !== null && readConversation(conversation, null, signal),
    possibleDuplicateOf !== null && readFirst(possibleDuplicateOf, signal),
  ])
  change()
}

/** The message that another may be a duplicate of. @param {string} id @param {AbortSignal} signal */
async function readFirst(id, signal) {
  /** @type {Answer<Message>} */
  const answer = await read(`/v1/messages/${encodeURIComponent(id)}`, signal)
  const { body } = told(answer, signal)
  if (body !== null) keep(body)
}

/**
 * What was said lately, or before what is known; what was read once stays.
 * @param {string} name @param {string | null} olderCursor @param {AbortSignal} signal
 */
async function readConversation(name, olderCursor, signal) {
  const { detail } = state
  if (detail === null) return
  const older = olderCursor === null ? '' : `&cursor=${encodeURIComponent(olderCursor)}`
  /** @type {Answer<ConversationPage>} */
  const answer = await read(
    `/v1/conversations/${encodeURIComponent(name)}/messages?limit=${entriesAtOnce}${older}`,
    signal,
  )
  const { body, problem } = told(answer, signal)
  detail.conversationRefused = problem
  if (body === null) return
  const known = detail.conversation
  const entries = new Map(known?.entries)
  for (const entry of body.data) entries.set(idOf(entry), entry)
  const cursor = known === null || olderCursor !== null ? body.nextCursor : known.olderCursor
  detail.conversation = { version: body.version, entries, olderCursor: cursor }
}

/** @param {Entry} entry */
export const idOf = (entry) => (entry.direction === 'inbound' ? entry.inbound.id : entry.message.id)

/** @param {Message} message */
export async function readOlder(message) {
  const cursor = state.detail?.conversation?.olderCursor ?? null
  if (message.conversation === null || cursor === null) return
  // Not learnt: the button stays, and the round that fails next says that there is no connection.
  await readConversation(message.conversation, cursor, new AbortController().signal).catch(() => {})
  change()
}

/** @param {SearchBy} by @param {string} value @param {AbortSignal} signal */
export async function readSearch(by, value, signal) {
  if (state.search?.by !== by || state.search.value !== value)
    state.search = { by, value, ids: null, hasMore: false, key: null, refused: null }
  const { search } = state
  if (value === '') return
  if (by === 'key') {
    /** @type {Answer<KeyState>} */
    const answer = await read(`/v1/idempotency-keys/${encodeURIComponent(value)}`, signal)
    const { body, problem } = told(answer, signal)
    search.key = body
    search.refused = problem
    const message = body?.message ?? null
    search.ids = message === null ? [] : [message.id]
    if (message !== null && isWhole(message)) keep(message)
  } else {
    const { messages, hasMore, refused } = await readMessages(`${by}=${encodeURIComponent(value)}`, 1, signal)
    search.ids = messages.map(({ id }) => id)
    search.hasMore = hasMore
    search.refused = refused
  }
  change()
}

/** Retention has not erased it. @param {NonNullable<KeyState['message']>} message @returns {message is Message} */
export const isWhole = (message) => 'channel' in message
