/**
 * Shapes of the HTTP contract, once: validation, static types and the OpenAPI document come from here. What the core
 * knows (statuses, channels, scopes) is taken from there.
 */
import { Type, type Static, type TSchema } from 'typebox'
import { keySources } from '../core/idempotency.ts'
import { channels, environments } from '../core/message-content.ts'
import { deliveryStatuses, heldReasons, resolutionSources, statuses } from '../core/message.ts'
import { outcomeKinds } from '../core/outcome.ts'
import { timelineTypes } from '../core/events.ts'
import { apiKeySchemas } from './api-key-schemas.ts'
import { requestSchemas } from './request-schemas.ts'
import { conversationSchemas } from './conversation-schemas.ts'
import { id, line, map, messageId, messageReference, nullable, strict, time } from './schema-parts.ts'

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

const delivery = Type.Object(
  {
    status: Type.Enum([...deliveryStatuses]),
    at: time('When, as the provider tells; else when its receipt came.'),
    code: nullable(Type.String(), { description: "The provider's own code." }),
  },
  strict,
)

const plan = Type.Object(
  {
    step: Type.Enum(['replay', 'look'], {
      description:
        'replay: the same call again, under the same key of the provider. look: ask the provider whether it has it.',
    }),
    at: time('When the step is due.'),
    givesUpAt: time('No such step is taken after it.'),
    steps: Type.Integer({ description: 'Steps taken so far.' }),
    lastEvidence: Type.String({ description: 'What is known of the last attempt.' }),
  },
  strict,
)

const approval = Type.Object(
  {
    status: Type.Enum(['pending', 'approved', 'declined', 'ended'], {
      description: 'ended: it lapsed, or was canceled, before anybody decided.',
    }),
    reason: Type.Enum([...heldReasons], {
      description: 'approval: its API key wants one. duplicate: the same was said a short while before.',
    }),
    by: nullable(Type.String(), { description: 'Id of the API key of whoever decided.' }),
    at: nullable(time('When.')),
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
    sentBy: nullable(Type.String(), { description: 'Id of the API key that sent it.' }),
    approval: nullable(approval, { description: 'What a person was asked about it; null: nobody was.' }),
    conversationVersion: nullable(Type.Integer(), {
      description:
        'Of a message that waits: the version of the conversation that its claim found, and that must still be it when it leaves.',
    }),
    possibleDuplicateOf: nullable(id('msg', 'The first of them.'), {
      description: 'The same was said to the same recipient a short while before, under another key.',
    }),
    provider: Type.String(),
    providerMessageId: nullable(Type.String(), { description: "The provider's id, where it gave one." }),
    attempts: Type.Integer({ description: 'Calls begun so far.' }),
    sendAt: nullable(time('Not before.')),
    notAfter: time('Never sent after.'),
    createdAt: time('When the key was claimed.'),
    updatedAt: time('The last change.'),
    sentAt: nullable(time('When the provider accepted it.')),
    delivery: nullable(delivery, { description: 'What receipts say became of it; null: none came yet.' }),
    resolution: nullable(resolution, {
      description: 'How an unknown outcome was settled; the last one, if there were several.',
    }),
    plan: nullable(plan, {
      description:
        'Of an unknown outcome: what the gateway does next by itself. Null: it waits for evidence, or a person.',
    }),
    openAttempts: Type.Array(id('att', 'An attempt.'), {
      description:
        'Attempts that may have been accepted and that nothing has settled: each can be resolved by a person.',
    }),
    metadata: map(Type.String()),
  },
  { $id: 'Message', ...strict },
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
    decision: Type.Optional(
      Type.Union([
        resolution,
        Type.Object({ decision: Type.Enum(['approved', 'declined']), by: Type.String(), at: time('When.') }, strict),
      ]),
    ),
    conversation: Type.Optional(
      Type.Object(
        { conversation: Type.String(), version: Type.Integer() },
        { ...strict, description: 'As it is now.' },
      ),
    ),
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

const ms = (description: string) => Type.Integer({ description: `${description} In milliseconds.` })
const capabilities = Type.Object(
  {
    recovery: Type.Enum(['keyed', 'lookup', 'lookup-weak', 'blind'], {
      description:
        'What may follow a lost answer. keyed: the same call under the same key. lookup: it is asked, and an absence that is proven is followed by another call. lookup-weak: it is asked. blind: nothing.',
    }),
    deduplication: nullable(
      Type.Object(
        {
          keyField: Type.String({ description: 'Where our key stands.' }),
          keyFormat: Type.Enum(['message_id', 'uuid']),
          lifetimeMs: ms('How long the provider knows a key.'),
          marginMs: ms('How much earlier it is not relied on any more.'),
          repeat: Type.Enum(['same_response', 'conflict_is_accepted', 'conflict_is_ambiguous', 'stored_failure']),
        },
        strict,
      ),
    ),
    lookup: nullable(
      Type.Object(
        {
          match: Type.Enum(['exact', 'scan']),
          strength: Type.Enum(['strong', 'weak']),
          settlingMs: ms('Before that, not to be found proves nothing.'),
          retentionMs: ms('How long it can be found.'),
          marginMs: ms('How much earlier that is not relied on any more.'),
        },
        strict,
      ),
    ),
    lateEvidence: Type.Enum(['none', 'reference', 'callback_url'], { description: 'What its receipts carry of ours.' }),
    acceptance: Type.Enum(['status', 'body'], { description: 'What proves acceptance.' }),
  },
  strict,
)

export const provider = Type.Object(
  {
    name: Type.String(),
    adapter: Type.String(),
    environment: Type.Enum([...environments]),
    channels: Type.Array(Type.Enum([...channels])),
    routes: Type.Array(Type.Enum([...channels]), {
      description: 'Channels whose messages go here unless they name another.',
    }),
    capabilities,
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
    resend: Type.Optional(
      Type.Boolean({
        description: 'Of one that was not sent: send it again, once, under the same key, before notAfter.',
      }),
    ),
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
  ...Object.values(requestSchemas),
  message,
  problem,
  list,
  timeline,
  keyState,
  voidedKey,
  providers,
  resolveBody,
  ...conversationSchemas,
  ...apiKeySchemas,
]
