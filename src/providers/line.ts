/**
 * LINE Messaging API: POST /v2/bot/message/push, JSON, bearer channel access token.
 * https://developers.line.biz/en/reference/messaging-api/#send-push-message
 *
 * Duplicates: `X-Line-Retry-Key`, a UUID, is valid for 24 hours after the first request. Once a request was accepted, a
 * repeat is blocked: 409, with the id of the accepted request in `x-line-accepted-request-id`
 * (https://developers.line.biz/en/docs/messaging-api/retrying-api-request/). That header is the proof, the 409 is not.
 * After a time-out or a 500: "your next request may be successful": the same request with the same key.
 *
 * LN1. The key is the UUID of the message id, and the body is made of the message alone: every attempt sends the same.
 * LN2. LINE has no error codes: a status with its error body and the `x-line-request-id` that all its answers carry is
 *      one of ours. A body `{"message":…}` alone is any gateway's.
 * LN3. "The Messaging API doesn't process requests that return HTTP status code 429."
 * LN4. LINE tells nothing of what becomes of a push message. Of its webhooks the texts that people write are taken in;
 *      the rest (who follows, who joins) is acknowledged, for it suspends those of a server that does not answer.
 * LN5. In a group it is the group that answers, whoever wrote: what somebody says there is no answer to a message that
 *      went to that person alone.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import { uuidFromId } from '../core/ids.ts'
import type { ChatRequest, MessageRequest } from '../core/message-content.ts'
import { apiUrl, callSettings } from './call-settings.ts'
import { dateOfMs, headerOf, hmacOf, isSame, jsonOf } from './incoming.ts'
import { under } from './place.ts'
import type {
  AnswerRules,
  AttemptContext,
  CodeRule,
  HttpAdapter,
  HttpAnswer,
  InboundReply,
  RenderedRequest,
  WebhookRules,
} from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

const hourMs = 3_600_000

const capabilities = {
  channels: ['chat'],
  deduplication: {
    keyField: 'header X-Line-Retry-Key',
    keyFormat: 'uuid',
    lifetimeMs: 24 * hourMs,
    marginMs: hourMs,
    repeat: 'conflict_is_accepted',
  },
  lookup: null,
  lateEvidence: 'none',
  acceptance: 'body',
} as const satisfies Capabilities

/**
 * By status, in the words of https://developers.line.biz/en/reference/messaging-api/#status-codes; where a status has
 * two meanings, by the documented message. A quota that is used up is about us, until the month is over or it is raised.
 */
const codes: Readonly<Record<string, CodeRule>> = {
  retry_key_accepted: { means: 'accepted_before', statuses: [409], wording: 'The retry key is already accepted' },
  401: { means: 'credentials', statuses: [401], wording: 'Valid channel access token is not specified.' },
  403: {
    means: 'credentials',
    statuses: [403],
    wording:
      'Not authorized to access the resource. Confirm that your account or plan is authorized to access the resource.',
  },
  monthly_limit: { means: 'credentials', statuses: [429], wording: 'You have reached your monthly limit.' },
  429: {
    means: 'refused_for_now',
    statuses: [429],
    wording: 'The API rate limit has been exceeded. Try again later.',
  },
  400: { means: 'rejected', statuses: [400], wording: 'Problem with the request.' },
  413: { means: 'rejected', statuses: [413], wording: 'Request exceeds the max size of 2MB.' },
  500: { means: 'unknown', statuses: [500], wording: 'Error on the internal server.' },
}

/** A user, a group chat or a multi-person chat. */
const receiver = /^[UCR][0-9a-f]{32}$/
const mostCharacters = 5000

const settings = Type.Object(
  {
    channelAccessToken: Type.String({
      pattern: '^[\\x21-\\x7e]+$',
      description:
        'A channel access token. With another one it counts as another provider: what was open is then for a person to settle.',
    }),
    channelSecret: Type.Optional(
      Type.String({ pattern: '^[\\x21-\\x7e]+$', description: 'The channel secret, which signs webhooks.' }),
    ),
    baseUrl: apiUrl({ default: 'https://api.line.me', follows: '/v2/bot/message/push' }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 10_000 }),
  },
  { additionalProperties: false },
)
export type LineSettings = Static<typeof settings>

function limitBroken(message: MessageRequest) {
  const { to, from, content } = chatOf(message)
  const { text, threadId } = content
  if (!receiver.test(to))
    return {
      pointer: '/to',
      detail: 'LINE takes the id of a user, a group or a room: U, C or R and 32 hexadecimal digits, in lower case.',
    }
  if (from !== undefined) return { pointer: '/from', detail: 'A LINE message has no sender but the channel itself.' }
  if (threadId !== undefined)
    return { pointer: '/content/threadId', detail: 'LINE has no threads: it would not be sent.' }
  if (text === '') return { pointer: '/content/text', detail: 'LINE does not send an empty text.' }
  if (!text.isWellFormed())
    return { pointer: '/content/text', detail: 'The text holds half a character (a lone surrogate).' }
  if (text.length > mostCharacters)
    return {
      pointer: '/content/text',
      detail: `LINE takes at most ${mostCharacters} characters, counted as UTF-16 units (an emoji is two or more); this text has ${text.length}.`,
    }
  return null
}

function render(message: MessageRequest, own: LineSettings, { messageId }: AttemptContext) {
  const { to, content } = chatOf(message)
  const key = uuidFromId('message', messageId)
  if (key === undefined) throw new TypeError('A message id without a UUID in it makes no retry key.')
  return {
    ...under(own.baseUrl, '/v2/bot/message/push'),
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'Sendonce',
      'x-line-retry-key': key,
    },
    body: JSON.stringify({ to, messages: [{ type: 'text', text: content.text }] }),
  } as const
}

const authorise = (_: RenderedRequest, { channelAccessToken }: LineSettings) => ({
  authorization: `Bearer ${channelAccessToken}`,
})

function chatOf(message: MessageRequest): ChatRequest {
  if (message.channel !== 'chat') throw new TypeError(`line was given a message of channel ${message.channel}`)
  return message
}

const answers: AnswerRules = {
  isAccepted: (status) => status === 200,
  messageIdOf(body) {
    const sent = memberOf(body, 'sentMessages')
    return Array.isArray(sent) ? textAt(sent[0], 'id') : null
  },
  errorCodeOf(body, status, headers) {
    if (has(headers, 'x-line-accepted-request-id')) return 'retry_key_accepted'
    const message = textAt(body, 'message')
    if (message === null || !has(headers, 'x-line-request-id')) return null
    return status === 429 && /^You have reached your monthly limit\.?$/.test(message) ? 'monthly_limit' : String(status)
  },
  codes,
}

const has = (headers: HttpAnswer['headers'], name: string): boolean => textAt(headers, name) !== null

/** https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/ */
const webhooks: WebhookRules<LineSettings> = {
  lacks: ({ channelSecret }) => (channelSecret === undefined ? 'channelSecret' : null),
  parse(request, { channelSecret = '' }) {
    const right = hmacOf('sha256', channelSecret, request.rawBody, 'base64')
    if (channelSecret === '' || !isSame(headerOf(request, 'x-line-signature'), right)) return { refused: 'forged' }
    const body = jsonOf(request.rawBody)
    const events = memberOf(body, 'events')
    if (!Array.isArray(events)) return { refused: 'unreadable' }
    const bot = textAt(body, 'destination')
    return { events: [], replies: (events as unknown[]).flatMap((event) => repliesIn(event, bot)) }
  },
}

/** https://developers.line.biz/en/reference/messaging-api/#message-event @param bot whom a person writes to alone */
function repliesIn(event: unknown, bot: string | null): readonly InboundReply[] {
  const [source, message, timestamp] = ['source', 'message', 'timestamp'].map((name) => memberOf(event, name))
  const [eventId, text] = [textAt(event, 'webhookEventId'), textAt(message, 'text')]
  const user = textAt(source, 'userId')
  const place = textAt(source, 'groupId') ?? textAt(source, 'roomId')
  const sentTo = place ?? user
  if (textAt(event, 'type') !== 'message' || textAt(message, 'type') !== 'text') return []
  if (eventId === null || text === null || text.trim() === '' || sentTo === null) return []
  const reply: InboundReply = {
    eventId,
    from: user ?? sentTo, // who wrote in a group is not always told
    to: place ?? bot,
    sentTo: [sentTo],
    text,
    at: typeof timestamp === 'number' ? dateOfMs(timestamp) : null,
    inReplyTo: textAt(message, 'quotedMessageId'),
  }
  return [reply]
}

export const line: HttpAdapter<LineSettings> = {
  adapter: 'line',
  capabilities,
  settings,
  identity: (own) => [own.baseUrl, own.channelAccessToken],
  limitBroken,
  render,
  authorise,
  answers,
  webhooks,
}
