/**
 * The error catalogue, as data: every problem that an answer can name (RFC 9457), once. From it come the answers, the
 * OpenAPI document, the pages under /problems/ and the table in the README.
 */
export interface ProblemKind {
  readonly status: number
  readonly title: string
  /** Is it of use to repeat this very request with this very key? */
  readonly retryable: boolean
  /** When it is of use all the same: the answer's own `retryable` says so then. */
  readonly retryableWhile?: string
  /** What to do, in one plain sentence for a person or a model. */
  readonly advice: string
}

export const problems = {
  'invalid-request': {
    status: 400,
    title: 'The request is not valid',
    retryable: false,
    advice: 'Correct what `errors` names and send it again; nothing was claimed, so the same key is fine.',
  },
  'idempotency-key-required': {
    status: 400,
    title: 'An Idempotency-Key is required',
    retryable: false,
    advice: 'Give an Idempotency-Key header, or both `conversation` and `reference`, from which a key is derived.',
  },
  'idempotency-key-invalid': {
    status: 400,
    title: 'The Idempotency-Key is malformed',
    retryable: false,
    advice: 'Give one key of 1 to 255 printable ASCII bytes, bare or in quotes, on one line and without parameters.',
  },
  'idempotency-key-timestamp': {
    status: 400,
    title: 'The Idempotency-Key is only a time',
    retryable: false,
    advice:
      'Use the name of the event (an order, a ticket, a webhook id): a repeat made later would carry another time.',
  },
  unauthorized: {
    status: 401,
    title: 'No valid API key',
    retryable: false,
    advice: 'Send `Authorization: Bearer so_live_…` (or so_test_…) with a key that exists and is not revoked.',
  },
  'webhook-forged': {
    status: 401,
    title: 'The signature does not hold',
    retryable: false,
    advice: 'Nothing was taken in; compare the secret of the provider with the one configured here, and PUBLIC_URL.',
  },
  forbidden: {
    status: 403,
    title: 'The API key lacks the scope',
    retryable: false,
    advice: 'Use an API key that has the scope named in `detail`.',
  },
  'not-found': {
    status: 404,
    title: 'There is nothing here',
    retryable: false,
    advice: 'Check the path and the id; what belongs to another account or environment is not shown.',
  },
  'key-never-seen': {
    status: 404,
    title: 'This key was never seen',
    retryable: true,
    advice: 'A request still on its way may yet arrive; send with this key, or void it to make sure it never sends.',
  },
  'in-progress': {
    status: 409,
    title: 'The first request is still being worked on',
    retryable: true,
    advice: 'Repeat this request with the same key after Retry-After; do not use another key.',
  },
  'key-void': {
    status: 409,
    title: 'This key was voided',
    retryable: false,
    advice: 'Nothing was and nothing will be sent under this key; if the message should go after all, use a new one.',
  },
  'key-taken': {
    status: 409,
    title: 'This key has a message',
    retryable: false,
    advice: 'It can no longer be voided: look at `message`, and cancel it if it has not left yet.',
  },
  'result-expired': {
    status: 409,
    title: 'The result was erased by retention',
    retryable: false,
    advice: 'The message ended as `message.status` says and is never sent again under this key.',
  },
  'message-canceled': {
    status: 409,
    title: 'The message was canceled',
    retryable: false,
    advice: 'Nothing was sent; if the message should go after all, send it under a new key.',
  },
  'possible-duplicate': {
    status: 409,
    title: 'This may be said already',
    retryable: false,
    advice: 'What this message is for is already served by `message`: do not send again, look at that one.',
  },
  'too-late': {
    status: 409,
    title: 'It is too late for that',
    retryable: false,
    advice: 'Look at the status of `message`: what has begun cannot be undone, and what is past its time is not sent.',
  },
  'already-decided': {
    status: 409,
    title: 'It was decided otherwise',
    retryable: false,
    advice: 'The first decision stands; `decision` tells what it was, by whom and when.',
  },
  'not-unknown': {
    status: 409,
    title: 'The outcome is not unknown',
    retryable: false,
    advice: 'Only a message whose status is unknown can be settled by hand; look at its status.',
  },
  'not-held': {
    status: 409,
    title: 'The message does not wait for a decision',
    retryable: false,
    advice: 'Only a message that is held can be approved or declined; look at its status.',
  },
  'fingerprint-mismatch': {
    status: 409,
    title: 'Another message was shown',
    retryable: false,
    advice: 'Read the message again, and decide about the fingerprint that it shows now.',
  },
  'conversation-changed': {
    status: 412,
    title: 'The conversation moved on',
    retryable: false,
    advice: 'Read the conversation again, and send only what is still needed, with the version read then in If-Match.',
  },
  'conversation-version-required': {
    status: 428,
    title: 'A version of the conversation is required',
    retryable: false,
    advice:
      'Name the conversation, read it with GET /v1/conversations/{conversation}/messages, and give its ETag in If-Match.',
  },
  'policy-refused': {
    status: 403,
    title: 'The policy of the API key does not allow it',
    retryable: false,
    advice: 'Nothing was claimed; send what the policy allows, or ask whoever made the API key.',
  },
  'api-key-revoked': {
    status: 409,
    title: 'The API key is revoked',
    retryable: false,
    advice: 'It gets no other secret, for it verifies nothing any more; make another API key.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request came too slowly',
    retryable: true,
    advice: 'Send it again with the same key; it was not read to its end.',
  },
  'payload-too-large': {
    status: 413,
    title: 'The body is too large',
    retryable: false,
    advice: 'Send less than the limit named in `detail`.',
  },
  'header-too-large': {
    status: 431,
    title: 'The request header is too large',
    retryable: false,
    advice: 'Send smaller header fields.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The media type is not supported',
    retryable: false,
    advice: 'Send `Content-Type: application/json`, without Content-Encoding.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'This key was used for another message',
    retryable: false,
    advice:
      'Repeat the first request unchanged to learn what became of it, or give this other message a key of its own.',
  },
  'no-provider': {
    status: 422,
    title: 'No provider for this channel',
    retryable: false,
    advice:
      'Configure a provider and a route for the channel in this environment, or name one that takes this channel.',
  },
  'message-rejected': {
    status: 422,
    title: 'The message was not sent',
    retryable: false,
    advice: 'Nothing was sent and nothing will be under this key; correct the message and send it under a new key.',
  },
  'message-expired': {
    status: 422,
    title: 'The message was not accepted in time',
    retryable: false,
    advice: 'Nothing was sent and nothing will be under this key; if it still matters, send it under a new key.',
  },
  'internal-error': {
    status: 500,
    title: 'A fault of the gateway',
    retryable: true,
    advice: 'Repeat the request with the same key; never with a new one, for the first may have been carried out.',
  },
  'store-unavailable': {
    status: 503,
    title: 'The data base cannot be reached',
    retryable: true,
    advice: 'Repeat this request with the same key after Retry-After; do not use another key.',
  },
  overloaded: {
    status: 503,
    title: 'Too much is waiting',
    retryable: true,
    advice: 'Nothing was claimed; repeat this request with the same key after Retry-After.',
  },
  'shutting-down': {
    status: 503,
    title: 'This gateway is shutting down',
    retryable: true,
    advice: 'Repeat this request with the same key after Retry-After; another gateway will take it.',
  },
  'outcome-unknown': {
    status: 504,
    title: 'It is not known whether the message was sent',
    retryable: false,
    retryableWhile: 'the gateway is settling it',
    advice:
      'The provider may have it. Do not send it under a new key: ask GET /v1/messages/{id}, or let a person settle it with POST /v1/messages/{id}/resolve.',
  },
} as const satisfies Record<string, ProblemKind>

export type ProblemType = keyof typeof problems
export const problemTypes = Object.keys(problems) as ProblemType[]

/** Members beside the standard ones; each documented in api.md's tables and in the OpenAPI document. */
export interface ProblemExtras {
  readonly sent?: 'yes' | 'no' | 'maybe'
  readonly message?: unknown
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[]
  readonly decision?: unknown
  readonly conversation?: { readonly conversation: string; readonly version: number }
  /** Where it differs from what the catalogue says of the type. */
  readonly retryable?: boolean
}

export interface ProblemBody extends ProblemExtras {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly instance: string
  readonly retryable: boolean
}

/** A URI reference (RFC 9457, 3.1.1): the page that explains it is served by the gateway itself. */
export const problemUri = (type: ProblemType): string => `/problems/${type}`

/** @param instance URI of this occurrence: the message, or the request. @param detail what happened here; the advice follows. */
export function problemBody(
  type: ProblemType,
  instance: string,
  detail: string | null,
  extras: ProblemExtras = {},
): ProblemBody {
  const { title, status, retryable, advice } = problems[type]
  const sentence = detail === null ? advice : `${detail} ${advice}`
  return { type: problemUri(type), title, status, detail: sentence, instance, retryable, ...extras }
}
