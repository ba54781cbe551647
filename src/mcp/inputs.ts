/**
 * What the tools take: strict, and described for a model. Fields of a message are those of POST /v1/messages, taken from
 * its schemas; what a channel's content must be is judged by the gateway, by the channel.
 */
import { Type, type Static, type TSchema } from 'typebox'
import { channels } from '../core/message-content.ts'
import { requestSchemas } from '../http/request-schemas.ts'
import { line, messageId, strict } from '../http/schema-parts.ts'

const controls = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029'
/** `.` and `..` cannot stand in a path: whoever reads a URL takes them for steps. No look-ahead: not every client's engine has it. */
const conversation = line(255, {
  pattern: `^(\\.{0,2}[^.${controls}][^${controls}]*|\\.{3}[^${controls}]*)$`,
  description: 'The conversation, by the name that your task gives it.',
  examples: ['ticket-991'],
})

const { cc, bcc, replyTo, reference, provider, sendAt, delaySeconds, notAfter, ttlSeconds } =
  requestSchemas.email.properties
const contents = channels.map((channel) => requestSchemas[channel].properties.content)

const proposal = (content: TSchema) =>
  Type.Object(
    {
      conversation,
      version: Type.Integer({
        minimum: 0,
        maximum: 999_999_999, // of an If-Match (core/conversation.ts)
        description: 'The version that read_conversation told you just now. Never guess it, never count it up.',
      }),
      intent: line(255, {
        description:
          'What the message is for, named after the task. One purpose has one intent, however the text is worded and however often you are asked; a message that was refused does not get another.',
        examples: ['reply:refund-question', 'ship-notice:order-42'],
      }),
      channel: Type.Enum([...channels]),
      to: Type.String({
        minLength: 1,
        maxLength: 4096,
        description:
          'sms: a number, as +447700900123. email: an address. chat: a channel or user id. push: a device token. webhook: an https URL.',
      }),
      content,
      from: Type.Optional(line(320, { description: "The sender; leave it out for the provider's default." })),
      cc,
      bcc,
      replyTo,
      replaces: Type.Optional(
        Type.Unsafe<string>({
          ...messageId,
          description:
            'The id of a message for the same intent that this one takes the place of. Only for one that will not be sent, because the conversation has moved on since, or for one that came to nothing and that a person has asked you for again.',
        }),
      ),
      reference,
      provider,
      sendAt,
      delaySeconds,
      notAfter,
      ttlSeconds,
    },
    strict,
  )

export const proposalShape = proposal(
  Type.Unsafe<object>({ type: 'object', anyOf: contents, description: 'What is said, as the channel takes it.' }),
)
/** By which arguments are checked here: of five shapes that may be meant, none can name what is wrong. */
export const proposalCheck = proposal(Type.Unsafe<object>({ type: 'object' }))
export type Proposal = Static<typeof proposalCheck>

export const readShape = Type.Object(
  {
    conversation,
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, description: 'How many of the last entries; default 30.' }),
    ),
  },
  strict,
)
export type ReadInput = Static<typeof readShape>

export const getShape = Type.Object({ id: messageId }, strict)
export type GetInput = Static<typeof getShape>
