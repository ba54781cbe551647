/**
 * What callers ask to be said: the validated body of POST /v1/messages, one type a channel. The schemas in
 * http/request-schemas.ts are tied to these types at compile time; nothing here knows HTTP or a provider.
 */
export const channels = ['sms', 'email', 'chat', 'push', 'webhook'] as const
export type Channel = (typeof channels)[number]

export const environments = ['live', 'test'] as const
export type Environment = (typeof environments)[number]

export interface Attachment {
  readonly filename: string
  readonly contentType: string
  /** Base64 (RFC 4648, section 4). */
  readonly content: string
}

/** Fields of every channel. Times are RFC 3339; `delaySeconds` and `ttlSeconds` count from the first arrival. */
interface Common {
  readonly to: string
  readonly from?: string
  readonly conversation?: string
  readonly reference?: string
  readonly intent?: string
  readonly provider?: string
  readonly sendAt?: string
  readonly delaySeconds?: number
  readonly notAfter?: string
  readonly ttlSeconds?: number
  readonly metadata?: Readonly<Record<string, string>>
}

export interface SmsRequest extends Common {
  readonly channel: 'sms'
  readonly content: { readonly text: string }
}
export interface EmailRequest extends Common {
  readonly channel: 'email'
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  readonly replyTo?: string
  readonly content: {
    readonly subject: string
    readonly text?: string
    readonly html?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly attachments?: readonly Attachment[]
  }
}
export interface ChatRequest extends Common {
  readonly channel: 'chat'
  readonly content: { readonly text: string; readonly threadId?: string }
}
export interface PushRequest extends Common {
  readonly channel: 'push'
  readonly content: { readonly title: string; readonly body: string; readonly data?: Readonly<Record<string, unknown>> }
}
export interface WebhookRequest extends Common {
  readonly channel: 'webhook'
  readonly content: { readonly type: string; readonly data: unknown }
}

export type MessageRequest = SmsRequest | EmailRequest | ChatRequest | PushRequest | WebhookRequest
