/**
 * Slack: POST /api/chat.postMessage, JSON, a bot's token (scope chat:write).
 * https://docs.slack.dev/reference/methods/chat.postMessage
 *
 * Duplicates: it takes no key; what is posted twice stands there twice. Each message carries our reference in its
 * `metadata`, so that it can be found in the conversation's recent messages (scopes channels:history, groups:history,
 * im:history, mpim:history), where the conversation is named by its id. It may have scrolled out of what is shown, or been
 * deleted: not to be found proves nothing.
 * After a time-out: nothing is documented; of `internal_error` and `fatal_error` Slack says that a part of the operation
 * may have succeeded. It is asked.
 *
 * K1. A 200 says nothing: `ok` in its body does. A refusal is a 200, too, so that a code which is not listed is open.
 * K2. What callers wrote goes into the JSON body, and their channel and thread into an encoded query, too. The trace
 *     context stays here.
 * K3. Events (https://docs.slack.dev/apis/events-api) show our own messages as they were posted, with their metadata: that
 *     proves acceptance, and there is no other receipt. Metadata that another app posted is not believed.
 * K4. Of what people write (https://docs.slack.dev/reference/events/message) the first telling counts: no edits, and no
 *     bots, of which we are one. In a channel it is the channel that answers; in a direct message, the person.
 */
import { Type, type Static } from 'typebox'
import type { Capabilities } from '../core/capabilities.ts'
import type { ChatRequest, MessageRequest } from '../core/message-content.ts'
import { callSettings } from './call-settings.ts'
import { dateOfMs, headerOf, hmacOf, isRecent, isSame, jsonOf, noNews, saidIn, timeOf } from './incoming.ts'
import type {
  AnswerRules,
  CodeMeaning,
  CodeRule,
  HttpAdapter,
  LookupCall,
  ParsedWebhook,
  RenderedRequest,
  WebhookEvent,
  WebhookRules,
} from './provider.ts'
import { memberOf, textAt } from './read-body.ts'

const dayMs = 86_400_000

const capabilities = {
  channels: ['chat'],
  deduplication: null,
  // How long a workspace keeps messages is its own affair; a look-up that proves nothing is given up after a day.
  lookup: { match: 'scan', strength: 'weak', settlingMs: 10_000, retentionMs: 2 * dayMs, marginMs: dayMs / 2 },
  lateEvidence: 'reference',
  acceptance: 'body',
} as const satisfies Capabilities

/** Slack's codes and words, by what they mean for a message; under a 200 where nothing else is said. */
const wordings: Readonly<Partial<Record<CodeMeaning, Readonly<Record<string, string>>>>> = {
  credentials: {
    not_authed: 'No authentication token provided.',
    invalid_auth: 'Some aspect of authentication cannot be validated.',
    account_inactive: 'Authentication token is for a deleted user or workspace.',
    token_revoked: 'Authentication token is for a deleted user or workspace or the app has been removed.',
    token_expired: 'Authentication token has expired.',
    missing_scope: 'The token used is not granted the specific scope permissions required to complete this request.',
    not_allowed_token_type: 'The token type used in this request is not allowed.',
    ekm_access_denied: 'Administrators have suspended the ability to post a message.',
    accesslimited: 'Access to this method is limited on the current network.',
  },
  refused_for_now: {
    ratelimited: 'The request has been ratelimited; Retry-After says when to retry the request.',
    rate_limited: 'Application has posted too many messages.',
    org_login_required:
      'The workspace is undergoing an enterprise migration and will not be available until migration is complete.',
    team_added_to_org: 'The workspace is currently undergoing migration to an Enterprise Organization.',
  },
  unknown: {
    internal_error: "It's possible some aspect of the operation succeeded before the error was raised.",
    fatal_error: "It's possible some aspect of the operation succeeded before the error was raised.",
    request_timeout: 'The POST data was either missing or truncated.',
  },
  rejected: {
    channel_not_found: 'Value passed for channel was invalid.',
    not_in_channel: 'Cannot post user messages to a channel they are not in.',
    is_archived: 'Channel has been archived.',
    msg_too_long: 'Message text is too long.',
    no_text: 'No message text provided.',
    no_permission: 'The token does not have the permissions; the app must be a member of the conversation.',
    access_denied: 'Access to a resource specified in the request is denied.',
    restricted_action: 'A workspace preference prevents the authenticated user from posting.',
    restricted_action_read_only_channel: 'Cannot post any message into a read-only channel.',
    restricted_action_thread_only_channel: 'Cannot post top-level messages into a thread-only channel.',
    restricted_action_non_threadable_channel: 'Cannot post thread replies into a non_threadable channel.',
    invalid_metadata_format: 'Invalid metadata format provided.',
    invalid_metadata_schema: 'Invalid metadata schema provided.',
    invalid_arguments: 'The method was called with invalid arguments.',
    invalid_arg_name: 'The method was passed an argument whose name falls outside the bounds of accepted values.',
    invalid_charset: 'The charset specified in the Content-Type header was invalid.',
    invalid_post_type: 'The specified Content-Type was invalid.',
  },
}

const codes: Readonly<Record<string, CodeRule>> = Object.fromEntries(
  Object.entries(wordings).flatMap(([means, listed]) =>
    Object.entries(listed).map(([code, wording]) => [
      code,
      // https://docs.slack.dev/apis/web-api/rate-limits: a limit is the one refusal with a status of its own.
      { means: means as CodeMeaning, statuses: means === 'refused_for_now' ? [200, 429] : [200], wording },
    ]),
  ),
)

const settings = Type.Object(
  {
    token: Type.String({ pattern: '^[\\x21-\\x7e]+$', description: "The bot's token: xoxb-…" }),
    signingSecret: Type.Optional(
      Type.String({ pattern: '^[\\x21-\\x7e]+$', description: "The app's signing secret, which signs events." }),
    ),
    baseUrl: Type.String({
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      default: 'https://slack.com',
      description: 'Where the API is; a path in it is kept in front of /api.',
    }),
    ...callSettings({ connectTimeoutMs: 3000, answerTimeoutMs: 10_000 }),
  },
  { additionalProperties: false },
)
export type SlackSettings = Static<typeof settings>

/** A conversation or a user by id, or a channel by name. */
const conversation = /^([CGDUW][A-Z0-9]{6,20}|#?[\p{Ll}\p{Lo}\p{N}_-]{1,80})$/u
const timestamp = /^\d{1,12}\.\d{6}$/
const mostCharacters = 40_000

function limitBroken(message: MessageRequest) {
  const {
    to,
    from,
    content: { text, threadId },
  } = chatOf(message)
  if (!conversation.test(to))
    return {
      pointer: '/to',
      detail: 'Slack takes the id of a conversation (C…, G…, D…) or user (U…), or a channel name.',
    }
  if (from !== undefined) return { pointer: '/from', detail: 'Slack posts as the app that the token belongs to.' }
  if (threadId !== undefined && !timestamp.test(threadId))
    return { pointer: '/content/threadId', detail: 'A thread is the ts of its first message: 1503435956.000247, say.' }
  if (text.trim() === '') return { pointer: '/content/text', detail: 'Slack does not post an empty text.' }
  if (!text.isWellFormed())
    return { pointer: '/content/text', detail: 'The text holds half a character (a lone surrogate).' }
  if (text.length > mostCharacters)
    return {
      pointer: '/content/text',
      detail: `Slack cuts a text of more than ${mostCharacters} characters (UTF-16 units); this one has ${text.length}.`,
    }
  return null
}

const chatOf = (message: MessageRequest): ChatRequest => {
  if (message.channel !== 'chat') throw new TypeError(`slack was given a message of channel ${message.channel}`)
  return message
}

function placeOf({ baseUrl }: SlackSettings, method: string): Pick<RenderedRequest, 'origin' | 'path'> {
  const { origin, pathname } = new URL(baseUrl)
  return { origin, path: `${pathname.replace(/\/+$/, '')}/api/${method}` }
}

const ours = 'sendonce'

const answers: AnswerRules = {
  isAccepted: (status, body) => status === 200 && memberOf(body, 'ok') === true,
  messageIdOf: (body) => textAt(body, 'ts'),
  errorCodeOf: (body) => (memberOf(body, 'ok') === false ? textAt(body, 'error') : null),
  codes,
}

/** A page that fits into what we read of an answer; it is also as much as Slack gives to some apps, or twice that. */
const pageSize = 30
/** Slack's clock and ours may differ by so much. */
const skewMs = 60_000

const lookup: LookupCall<SlackSettings> = {
  render(message, own, { createdAt }) {
    const { to, content } = chatOf(message)
    const query = new URLSearchParams({
      channel: to,
      ...(content.threadId === undefined ? {} : { ts: content.threadId }),
      oldest: ((createdAt.getTime() - skewMs) / 1000).toFixed(6),
      include_all_metadata: 'true',
      limit: String(pageSize),
    })
    const method = content.threadId === undefined ? 'conversations.history' : 'conversations.replies'
    return { ...placeOf(own, `${method}?${query.toString()}`), method: 'GET', headers: {}, body: null }
  },
  read(body, { messageId }) {
    const messages = memberOf(body, 'messages')
    if (memberOf(body, 'ok') !== true || !Array.isArray(messages)) return null
    const found = (messages as unknown[]).filter((each) => {
      const metadata = memberOf(each, 'metadata')
      return (
        memberOf(metadata, 'event_type') === ours &&
        memberOf(memberOf(metadata, 'event_payload'), 'reference') === messageId
      )
    })
    // There is more than the page shows: then not to be on it is no news at all.
    if (found.length === 0 && memberOf(body, 'has_more') === true) return null
    return { count: found.length, providerMessageId: textAt(found[0], 'ts') }
  },
}

/** https://docs.slack.dev/authentication/verifying-requests-from-slack */
const webhooks: WebhookRules<SlackSettings> = {
  lacks: ({ signingSecret }) => (signingSecret === undefined ? 'signingSecret' : null),
  parse(request, { signingSecret = '' }, now) {
    const seconds = headerOf(request, 'x-slack-request-timestamp')
    const content = Buffer.concat([Buffer.from(`v0:${seconds}:`), request.rawBody])
    const right = `v0=${hmacOf('sha256', signingSecret, content, 'hex')}`
    const at = timeOf(seconds)
    if (signingSecret === '' || at === null || !isSame(headerOf(request, 'x-slack-signature'), right))
      return { refused: 'forged' }
    if (!isRecent(at, now)) return { refused: 'stale' }
    const body = jsonOf(request.rawBody)
    if (typeof body !== 'object' || body === null) return { refused: 'unreadable' }
    const challenge = textAt(body, 'challenge')
    if (textAt(body, 'type') === 'url_verification' && challenge !== null)
      return { ...noNews, answer: { contentType: 'text/plain; charset=utf-8', body: challenge } }
    const events = postedIn(body)
    return events.length > 0 ? { events, replies: [] } : writtenIn(body)
  },
}

function postedIn(body: object): WebhookEvent[] {
  const [eventId, event, app] = [textAt(body, 'event_id'), memberOf(body, 'event'), textAt(body, 'api_app_id')]
  const type = textAt(event, 'type')
  const metadata = memberOf(event, 'metadata')
  const isOurs = memberOf(metadata, 'event_type') === ours && app !== null && memberOf(event, 'app_id') === app
  if (eventId === null || !isOurs || (type !== 'message' && type !== 'message_metadata_posted')) return []
  const ts = textAt(event, type === 'message' ? 'ts' : 'message_ts')
  const messageId = textAt(memberOf(metadata, 'event_payload'), 'reference')
  const at = ts === null ? null : timeOf(ts.split('.')[0] ?? '')
  return [{ eventId, messageId, attemptId: null, providerMessageId: ts, kind: 'accepted', at, code: null }]
}

/** Subtypes under which people write; none is the ordinary one. */
const byPeople: readonly (string | null)[] = [null, 'thread_broadcast', 'file_share', 'me_message']

/** K4. A direct message has a conversation of its own, D…; what was sent may have named it, or the person. */
function writtenIn(body: object): ParsedWebhook {
  const [eventId, event] = [textAt(body, 'event_id'), memberOf(body, 'event')]
  const [user, channel, ts] = [textAt(event, 'user'), textAt(event, 'channel'), textAt(event, 'ts')]
  const thread = textAt(event, 'thread_ts')
  if (textAt(event, 'type') !== 'message' || !byPeople.includes(textAt(event, 'subtype'))) return noNews
  if (eventId === null || user === null || channel === null || memberOf(event, 'bot_id') !== undefined) return noNews
  return saidIn({
    eventId,
    from: user,
    to: channel,
    sentTo: channel.startsWith('D') ? [channel, user] : [channel],
    text: textAt(event, 'text') ?? '',
    at: ts !== null && timestamp.test(ts) ? dateOfMs(Math.floor(Number(ts) * 1000)) : null,
    inReplyTo: thread === ts ? null : thread,
  })
}

export const slack: HttpAdapter<SlackSettings> = {
  adapter: 'slack',
  capabilities,
  settings,
  identity: ({ baseUrl, token }) => [baseUrl, token],
  limitBroken,
  render(message, own, { messageId }) {
    const { to, content } = chatOf(message)
    return {
      ...placeOf(own, 'chat.postMessage'),
      method: 'POST',
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify({
        channel: to,
        text: content.text,
        thread_ts: content.threadId,
        metadata: { event_type: ours, event_payload: { reference: messageId } },
      }),
    }
  },
  authorise: (_, { token }) => ({ authorization: `Bearer ${token}` }),
  answers,
  lookup,
  webhooks,
}
