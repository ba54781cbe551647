/** Shapes of /v1/api-keys: what may be asked of a key, and how one is shown. Kinds, scopes and rules come from the core. */
import { Type, type Static, type TSchema } from 'typebox'
import { apiKinds, apiScopes, grace } from '../core/api-key.ts'
import { approvalRules, guardModes, guardWindow, type GivenPolicy, type KeyPolicy } from '../core/key-policy.ts'
import { channels, environments } from '../core/message-content.ts'
import { line, nullable, strict, time } from './schema-parts.ts'

const some = { minItems: 1, uniqueItems: true }
const channelList = Type.Array(Type.Enum([...channels]), some)

const guard = {
  mode: Type.Enum([...guardModes], {
    description:
      'What becomes of a message like one that went to the same recipient in the same conversation. flag: it goes, and names the other. hold: a person decides. refuse: 409.',
  }),
  windowSeconds: Type.Integer({
    minimum: guardWindow.minS,
    maximum: guardWindow.maxS,
    description: 'How long ago the other may have been sent.',
  }),
}

const policy = {
  requireConversationVersion: Type.Boolean({
    description: 'A message in a conversation needs `If-Match`: who sends must have read it.',
  }),
  requireApproval: Type.Union([Type.Enum([...approvalRules]), Type.Object({ channels: channelList }, strict)], {
    description: 'When a person must approve: never, always, of a first message to a recipient, or on some channels.',
  }),
  duplicateGuard: Type.Object(guard, strict),
  allowedChannels: nullable(channelList, { description: 'Null: all.' }),
  allowedProviders: nullable(Type.Array(line(63), some), { description: 'Null: all.' }),
}
const keyPolicy = Type.Object(policy, { $id: 'KeyPolicy', ...strict })

const givenPolicy = Type.Object(
  {
    requireConversationVersion: Type.Optional(policy.requireConversationVersion),
    requireApproval: Type.Optional(policy.requireApproval),
    duplicateGuard: Type.Optional(
      Type.Object(
        { mode: Type.Optional(guard.mode), windowSeconds: Type.Optional(guard.windowSeconds) },
        { ...strict },
      ),
    ),
    allowedChannels: Type.Optional(policy.allowedChannels),
    allowedProviders: Type.Optional(policy.allowedProviders),
  },
  { $id: 'GivenPolicy', ...strict, description: 'What is left out is the default of the kind.' },
)

const scopes = Type.Array(Type.Enum([...apiScopes]), some)

export const newApiKey = Type.Object(
  {
    kind: Type.Optional(
      Type.Enum([...apiKinds], {
        description:
          'Who holds it. Bounds the scopes, and gives the defaults of the policy. Left out: `person` if a scope needs one, else `service`.',
      }),
    ),
    name: Type.Optional(line(100, { description: 'A label for people.', examples: ['support assistant'] })),
    scopes,
    policy: Type.Optional(Type.Ref('GivenPolicy')),
  },
  {
    $id: 'NewApiKey',
    ...strict,
    examples: [
      {
        kind: 'agent',
        name: 'support assistant',
        scopes: ['send', 'read'],
        policy: { requireApproval: 'first_contact', allowedChannels: ['email'] },
      },
      { kind: 'service', name: 'shop', scopes: ['send', 'read'] },
      { kind: 'person', name: 'duty desk', scopes: ['read', 'approve', 'resolve'] },
    ],
  },
)

const rotation = Type.Object(
  {
    graceSeconds: Type.Optional(
      Type.Integer({
        minimum: grace.minS,
        maximum: grace.maxS,
        description: `For how long the present secret holds beside the new one; left out: ${grace.defaultS}. 0: it has leaked, and ends now.`,
      }),
    ),
  },
  { $id: 'Rotation', ...strict, examples: [{ graceSeconds: grace.defaultS }, { graceSeconds: 0 }] },
)

export const apiKeyId = Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$', description: 'Id of an API key.' })

const shown = {
  object: Type.Literal('api_key'),
  account: Type.String(),
  environment: Type.Enum([...environments]),
  scopes: Type.Array(Type.Enum([...apiScopes])),
  kind: Type.Enum([...apiKinds]),
  name: nullable(Type.String()),
  policy: Type.Ref('KeyPolicy'),
  createdAt: time('When it was made.'),
  createdBy: nullable(Type.String(), {
    description: 'The API key that made it, or `cli:` and a user; null: made before this was kept.',
  }),
  previousSecretUntil: nullable(time('Until when the secret before the present one holds.'), {
    description: 'Null: it does not.',
  }),
  revokedAt: nullable(time('Since when it verifies nothing.')),
}
const apiKey = Type.Object({ id: apiKeyId, ...shown }, { $id: 'ApiKey', ...strict })
const apiKeyWithSecret = Type.Object(
  { id: apiKeyId, key: Type.String({ description: 'What callers send. Shown this once.' }), ...shown },
  { $id: 'ApiKeyWithSecret', ...strict },
)
const apiKeyList = Type.Object(
  {
    data: Type.Array(Type.Ref('ApiKey')),
    nextCursor: nullable(Type.String(), { description: 'For the next page; null on the last.' }),
  },
  { $id: 'ApiKeyList', ...strict },
)

export const apiKeysQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
    cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.' })),
  },
  strict,
)

export type RotationBody = Static<typeof rotation>
export type ApiKeysQuery = Static<typeof apiKeysQuery>

type Fits<A, B> = [A] extends [B] ? true : { mismatch: [A, B] }
// The schemas and the core's types say the same; a difference fails to compile here.
const fits: { whole: Fits<Static<typeof keyPolicy>, KeyPolicy>; given: Fits<Static<typeof givenPolicy>, GivenPolicy> } =
  { whole: true, given: true }
void fits

export const apiKeySchemas: readonly TSchema[] = [
  keyPolicy,
  givenPolicy,
  newApiKey,
  rotation,
  apiKey,
  apiKeyWithSecret,
  apiKeyList,
]
