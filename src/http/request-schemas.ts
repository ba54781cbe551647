/** The body of POST /v1/messages, one schema a channel; tied to the core's types at compile time. */
import { Type, type Static, type TSchema } from 'typebox'
import type { Channel, MessageRequest } from '../core/message-content.ts'
import { line, text, time, address, strict, map, yearS } from './schema-parts.ts'

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
        // Not `Type.Record`: its pattern would be lost on the way to the OpenAPI document.
        headers: Type.Optional(
          map(line(998), { maxProperties: 50, propertyNames: { type: 'string', pattern: '^[A-Za-z0-9-]{1,76}$' } }),
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
    to: line(255, {
      description: 'Channel or user id; for WhatsApp `whatsapp:` and the E.164 number.',
      examples: ['C024BE91L'],
    }),
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
