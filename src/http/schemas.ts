/**
 * Shapes of the HTTP contract, once: validation, static types and the OpenAPI document come from here. What the core
 * knows (statuses, channels, scopes) is taken from there.
 */
import { Type, type Static, type TSchema, type TSchemaOptions } from 'typebox'
import { keySources } from '../core/idempotency.ts'
import { channels, environments, type Channel, type MessageRequest } from '../core/message-content.ts'
import { resolutionSources, statuses } from '../core/message.ts'
import { outcomeKinds } from '../core/outcome.ts'
import { timelineTypes } from '../core/state-machine.ts'

/** One readable line: it may reach a header of a provider or of an e-mail, so no control characters. */
const line = (maxLength: number, more: TSchemaOptions = {}) =>
  Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$', ...more })
const text = (description: string) => Type.String({ minLength: 1, description })
const time = (description: string) => Type.String({ format: 'date-time', description })
const address = (more: TSchemaOptions = {}) => Type.String({ format: 'email', maxLength: 320, ...more })
const strict = { additionalProperties: false }
const nullable = <T extends TSchema>(schema: T, more: TSchemaOptions = {}) => Type.Union([schema, Type.Null()], more)
/** Members of any name; `Type.Record` would leave those with a line break in their name unchecked. */
const map = <T extends TSchema>(values: T, more: TSchemaOptions = {}) =>
  Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: values, ...more })
const yearS = 31_536_000

const common = {
  conversation: Type.Optional(
    line(255, { description: 'What the account groups messages by.', examples: ['ticket-991'] }),
  ),
  reference: Type.Optional(
    line(255, {
      description: "The caller's own id of this message, unique within the conversation.",
      examples: ['order-42'],
    }),
  ),
  intent: Type.Optional(
    line(255, {
      description:
        'What the message is for: while one with the same intent is not failed or canceled, a second is refused.',
      examples: ['ship-notice:order-42'],
    }),
  ),
  provider: Type.Optional(line(63, { description: 'Pins one configured provider; else the route of the channel.' })),
  sendAt: Type.Optional(time('Not before this time. Not together with `delaySeconds`.')),
  delaySeconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: yearS, description: 'Not before this many seconds after the first arrival.' }),
  ),
  notAfter: Type.Optional(
    time('Never sent after this time; default 24 h after arrival or `sendAt`. Not together with `ttlSeconds`.'),
  ),
  ttlSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: yearS,
      description: 'Never sent later than this many seconds after the first arrival.',
    }),
  ),
  metadata: Type.Optional(
    map(Type.String(), {
      maxProperties: 50,
      description: 'Kept with the message, shown back, not part of the fingerprint.',
    }),
  ),
}

const sms = Type.Object(
  {
    channel: Type.Literal('sms'),
    to: Type.String({ pattern: '^\\+[1-9][0-9]{1,14}$', description: 'E.164 number.', examples: ['+447700900123'] }),
    from: Type.Optional(line(64, { description: "A number or name of the provider's; else its default." })),
    content: Type.Object({ text: text('What is said.') }, strict),
    ...common,
  },
  { $id: 'SmsRequest', ...strict },
)
const attachment = Type.Object(
  {
    filename: line(255),
    contentType: Type.String({ pattern: '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$', maxLength: 255 }),
    content: Type.String({ format: 'base64', contentEncoding: 'base64', description: 'Base64 (RFC 4648, section 4).' }),
  },
  strict,
)
const email = Type.Object(
  {
    channel: Type.Literal('email'),
    to: address({ description: 'E-mail address.', examples: ['someone@example.com'] }),
    from: Type.Optional(line(320, { description: 'An address, or `Name <address>`.' })),
    cc: Type.Optional(Type.Array(address(), { maxItems: 50 })),
    bcc: Type.Optional(Type.Array(address(), { maxItems: 50 })),
    replyTo: Type.Optional(address()),
    content: Type.Object(
      {
        subject: line(998),
        text: Type.Optional(text('Plain text; this or `html` is needed.')),
        html: Type.Optional(text('HTML.')),
        headers: Type.Optional(
          Type.Record(Type.String({ pattern: '^[A-Za-z0-9-]{1,76}$' }), line(998), { maxProperties: 50, ...strict }),
        ),
        attachments: Type.Optional(Type.Array(attachment, { maxItems: 50 })),
      },
      strict,
    ),
    ...common,
  },
  { $id: 'EmailRequest', ...strict },
)
const chat = Type.Object(
  {
    channel: Type.Literal('chat'),
    to: line(255, { description: 'Channel or user id.', examples: ['C024BE91L'] }),
    from: Type.Optional(line(255)),
    content: Type.Object({ text: text('What is said.'), threadId: Type.Optional(line(255)) }, strict),
    ...common,
  },
  { $id: 'ChatRequest', ...strict },
)
const push = Type.Object(
  {
    channel: Type.Literal('push'),
    to: line(4096, { description: 'Device token.' }),
    from: Type.Optional(line(255)),
    content: Type.Object(
      {
        title: text('Title of the notification.'),
        body: text('Its text.'),
        data: Type.Optional(map(Type.Unknown(), { description: 'Handed to the app.' })),
      },
      strict,
    ),
    ...common,
  },
  { $id: 'PushRequest', ...strict },
)
const webhook = Type.Object(
  {
    channel: Type.Literal('webhook'),
    to: line(2048, { format: 'https-url', description: 'HTTPS URL, without credentials.' }),
    from: Type.Optional(line(255)),
    content: Type.Object({ type: line(255, { examples: ['order.shipped'] }), data: Type.Unknown() }, strict),
    ...common,
  },
  { $id: 'WebhookRequest', ...strict },
)

/** One schema a channel. */
export const requestSchemas = { sms, email, chat, push, webhook } as const satisfies Record<Channel, TSchema>

type RequestOf<C extends Channel> = Extract<MessageRequest, { channel: C }>
type Fits<A, B> = [A] extends [B] ? true : { mismatch: [A, B] }
// The schemas and the core's types say the same; a difference fails to compile here.
const fits: { [C in Channel]: Fits<Static<(typeof requestSchemas)[C]>, RequestOf<C>> } = {
  sms: true,
  email: true,
  chat: true,
  push: true,
  webhook: true,
}
void fits

const id = (prefix: string, description: string) => Type.String({ pattern: `^${prefix}_[0-9a-f]{32}$`, description })
export const messageId = id('msg', 'Id of a message.')

const resolution = Type.Object(
  {
    by: Type.Enum([...resolutionSources]),
    at: time('When.'),
    attempt: id('att', 'The attempt that was unknown.'),
    outcome: Type.Enum(['sent', 'not_sent']),
    apiKey: nullable(Type.String(), { description: 'Id of the API key of whoever settled it.' }),
    evidence: nullable(Type.String(), { description: 'What they saw.' }),
  },
  strict,
)

export const message = Type.Object(
  {
    id: messageId,
    object: Type.Literal('message'),
    environment: Type.Enum([...environments]),
    status: Type.Enum([...statuses]),
    statusReason: nullable(Type.String(), { description: 'Why, in a word, where the status does not say it all.' }),
    channel: Type.Enum([...channels]),
    to: Type.String(),
    from: nullable(Type.String()),
    cc: Type.Optional(Type.Array(Type.String())),
    bcc: Type.Optional(Type.Array(Type.String())),
    replyTo: Type.Optional(nullable(Type.String())),
    content: Type.Unknown({ description: 'As it was asked.' }),
    conversation: nullable(Type.String()),
    reference: nullable(Type.String()),
    intent: nullable(Type.String()),
    idempotencyKey: Type.String(),
    keySource: Type.Enum([...keySources]),
    fingerprint: Type.String({ pattern: '^v[0-9]+:[0-9a-f]{64}$' }),
    provider: Type.String(),
    providerMessageId: nullable(Type.String(), { description: "The provider's id, where it gave one." }),
    attempts: Type.Integer({ description: 'Calls begun so far.' }),
    sendAt: nullable(time('Not before.')),
    notAfter: time('Never sent after.'),
    createdAt: time('When the key was claimed.'),
    updatedAt: time('The last change.'),
    sentAt: nullable(time('When the provider accepted it.')),
    delivery: Type.Null({ description: 'What receipts say; none are taken in yet.' }),
    resolution: nullable(resolution, { description: 'How an unknown outcome was settled.' }),
    metadata: map(Type.String()),
  },
  { $id: 'Message', ...strict },
)

const messageReference = Type.Object(
  {
    id: messageId,
    status: Type.Enum([...statuses]),
    createdAt: Type.Optional(time('When the key was claimed.')),
  },
  strict,
)

export const problem = Type.Object(
  {
    type: Type.String({ format: 'uri-reference', description: 'Which problem; the page behind it explains it.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What happened, and what to do.' }),
    instance: Type.String({ format: 'uri-reference' }),
    retryable: Type.Boolean({ description: 'Is it of use to repeat this very request with this very key?' }),
    sent: Type.Optional(
      Type.Enum(['yes', 'no', 'maybe'], {
        description:
          'Was or will anything be sent under this key? Only after `no` is a new key safe. Absent: the key was not looked up.',
      }),
    ),
    message: Type.Optional(messageReference),
    errors: Type.Optional(
      Type.Array(
        Type.Object(
          { pointer: Type.String({ description: 'JSON pointer (RFC 6901).' }), detail: Type.String() },
          strict,
        ),
      ),
    ),
    decision: Type.Optional(resolution),
  },
  { $id: 'Problem', ...strict },
)

export const list = Type.Object(
  {
    data: Type.Array(Type.Ref('Message')),
    nextCursor: nullable(Type.String(), { description: 'For the next page; null on the last.' }),
  },
  { $id: 'MessageList', ...strict },
)

export const timeline = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          id: id('evt', 'Id of the event.'),
          type: Type.Enum([...timelineTypes]),
          at: time('When.'),
          attempt: nullable(id('att', 'The attempt it speaks of.')),
          data: map(Type.Unknown(), {
            description: `Evidence. Of an attempt that ended: \`outcome\` (${outcomeKinds.join(', ')}), phase, code.`,
          }),
        },
        strict,
      ),
    ),
  },
  { $id: 'Timeline', ...strict },
)

const sent = Type.Enum(['yes', 'no', 'maybe'], { description: 'Only after `no` is a new key safe.' })
export const keyState = Type.Object(
  {
    key: Type.String(),
    source: Type.Enum([...keySources]),
    firstSeenAt: time('When the key was claimed or voided.'),
    sent,
    message: nullable(Type.Union([Type.Ref('Message'), messageReference]), {
      description: 'The message; id and last status alone where the result was erased; null: the key is void.',
    }),
  },
  { $id: 'KeyState', ...strict },
)
export const voidedKey = Type.Object({ key: Type.String(), sent: Type.Literal('no') }, { $id: 'VoidedKey', ...strict })

export const provider = Type.Object(
  {
    name: Type.String(),
    adapter: Type.String(),
    environment: Type.Enum([...environments]),
    channels: Type.Array(Type.Enum([...channels])),
    routes: Type.Array(Type.Enum([...channels]), {
      description: 'Channels whose messages go here unless they name another.',
    }),
    capabilities: Type.Object(
      {
        deduplication: Type.Enum(['blind'], { description: 'blind: a lost answer is never followed by another call.' }),
        acceptance: Type.Enum(['status', 'body'], { description: 'What proves acceptance.' }),
      },
      strict,
    ),
    state: Type.Enum(['ready', 'stopped'], { description: 'stopped: it refuses our credentials; its messages wait.' }),
    callsInFlight: Type.Integer(),
    concurrency: Type.Integer(),
  },
  strict,
)
export const providers = Type.Object({ data: Type.Array(provider) }, { $id: 'ProviderList', ...strict })

export const resolveBody = Type.Object(
  {
    attempt: id('att', 'The attempt whose outcome is unknown; the time line names it.'),
    outcome: Type.Enum(['sent', 'not_sent']),
    providerMessageId: Type.Optional(line(255, { description: "The provider's id, of one that was sent." })),
    evidence: Type.String({ minLength: 1, maxLength: 2000, description: 'What you saw, and where.' }),
  },
  { $id: 'Resolution', ...strict },
)

/** What is looked for: PostgreSQL has no U+0000. */
const word = Type.String({ pattern: '^[^\\u0000]*$' })

export const listQuery = Type.Object(
  {
    conversation: Type.Optional(word),
    status: Type.Optional(Type.Enum([...statuses])),
    channel: Type.Optional(Type.Enum([...channels])),
    to: Type.Optional(word),
    reference: Type.Optional(word),
    intent: Type.Optional(word),
    provider: Type.Optional(word),
    createdAfter: Type.Optional(time('Created later than this.')),
    createdBefore: Type.Optional(time('Created earlier than this.')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
    cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.' })),
  },
  strict,
)
export type ListQuery = Static<typeof listQuery>
export type ResolveBody = Static<typeof resolveBody>

/** Everything that becomes a component of the OpenAPI document. */
export const components: readonly TSchema[] = [
  sms,
  email,
  chat,
  push,
  webhook,
  message,
  problem,
  list,
  timeline,
  keyState,
  voidedKey,
  providers,
  resolveBody,
]
