/** Shapes of conversations, approvals and the dry run. */
import { Type, type Static, type TSchema } from 'typebox'
import { keySources } from '../core/idempotency.ts'
import { guardModes } from '../core/key-policy.ts'
import { environments } from '../core/message-content.ts'
import { heldReasons } from '../core/message.ts'
import { id, line, messageReference, nullable, strict, text, time } from './schema-parts.ts'

const version = Type.Integer({
  minimum: 0,
  description: 'Grows with every message that goes out or comes in; 0: none did.',
})

const inbound = Type.Object(
  {
    id: id('evt', 'Id of what came in.'),
    eventId: nullable(Type.String(), { description: "The sender's name of the event; null: it gave none." }),
    source: Type.String({ description: '`api`, or the provider whose webhook brought it.' }),
    from: nullable(Type.String(), { description: 'Null: erased by retention.' }),
    text: nullable(Type.String(), { description: 'Null: erased by retention.' }),
    occurredAt: nullable(time('When, as its sender tells.')),
    receivedAt: time('When it came in.'),
  },
  { $id: 'Inbound', ...strict },
)

const outboundEntry = Type.Object(
  { direction: Type.Literal('outbound'), at: time('When it was claimed.'), message: Type.Ref('Message') },
  { $id: 'OutboundEntry', ...strict },
)
const inboundEntry = Type.Object(
  { direction: Type.Literal('inbound'), at: time('When it came in.'), inbound: Type.Ref('Inbound') },
  { $id: 'InboundEntry', ...strict },
)
const entry = Type.Union([Type.Ref('OutboundEntry'), Type.Ref('InboundEntry')])

const conversation = Type.Object(
  {
    conversation: Type.String(),
    object: Type.Literal('conversation'),
    environment: Type.Enum([...environments]),
    version,
    updatedAt: nullable(time('The last new version.')),
    lastMessage: nullable(entry),
  },
  { $id: 'Conversation', ...strict },
)
const conversationMessages = Type.Object(
  {
    version: Type.Integer({
      description: 'Read before the messages: it may be older than what is shown with it, never newer.',
    }),
    data: Type.Array(entry),
    nextCursor: nullable(Type.String(), { description: 'For the next page; null on the last.' }),
  },
  { $id: 'ConversationMessages', ...strict },
)
const recordedInbound = Type.Object({ version, inbound: Type.Ref('Inbound') }, { $id: 'RecordedInbound', ...strict })

const inboundBody = Type.Object(
  {
    eventId: Type.Optional(
      line(255, {
        description:
          "The sender's name of the event: the same again is the same message. Without it, `occurredAt` is needed.",
        examples: ['chat-8812'],
      }),
    ),
    from: line(320, { description: 'Who said it.', examples: ['+447700900123'] }),
    text: text('What was said.'),
    occurredAt: Type.Optional(time('When it was said.')),
  },
  { $id: 'InboundRequest', ...strict },
)
export type InboundBody = Static<typeof inboundBody>

const decisionBody = Type.Object(
  {
    fingerprint: Type.String({
      pattern: '^v[0-9]+:[0-9a-f]{64}$',
      description: 'Of the message as it was shown to whoever decides.',
    }),
  },
  { $id: 'Decision', ...strict },
)
export type DecisionBody = Static<typeof decisionBody>

const check = Type.Object(
  {
    verdict: Type.Enum(['send', 'schedule', 'hold', 'repeat', 'refuse']),
    reason: Type.String({ description: 'In one sentence.' }),
    problem: nullable(Type.Ref('Problem'), { description: 'Of one that would be refused.' }),
    key: Type.Object(
      {
        key: Type.String(),
        source: Type.Enum([...keySources]),
        message: nullable(messageReference, { description: 'What stands behind it already.' }),
      },
      strict,
    ),
    provider: nullable(Type.String(), { description: 'Where it would go first.' }),
    conversation: nullable(
      Type.Object(
        {
          conversation: Type.String(),
          version,
          matches: Type.Union([Type.Boolean(), Type.Null()], { description: 'If-Match; null: there is none.' }),
        },
        strict,
      ),
    ),
    intent: nullable(
      Type.Object(
        { intent: Type.String(), message: nullable(messageReference, { description: 'What has it.' }) },
        strict,
      ),
    ),
    duplicate: Type.Object(
      {
        mode: Type.Enum([...guardModes]),
        message: nullable(messageReference, { description: 'What it looks like a second of.' }),
      },
      strict,
    ),
    approval: Type.Object({ required: Type.Boolean(), reason: nullable(Type.Enum([...heldReasons])) }, strict),
    text: nullable(
      Type.Object(
        {
          encoding: Type.Enum(['GSM-7', 'UCS-2']),
          characters: Type.Integer({ description: 'In units of the encoding.' }),
          segments: Type.Integer({ description: 'Each is paid for.' }),
        },
        strict,
      ),
      { description: 'Of an SMS.' },
    ),
  },
  { $id: 'Check', ...strict },
)

export const conversationSchemas: readonly TSchema[] = [
  inbound,
  outboundEntry,
  inboundEntry,
  conversation,
  conversationMessages,
  recordedInbound,
  inboundBody,
  decisionBody,
  check,
]
