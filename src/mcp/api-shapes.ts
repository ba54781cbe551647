/** What the tools read of the gateway's answers; the rest of them is passed over. The contract is the gateway's. */

export interface ApiMessage {
  readonly id: string
  readonly status: string
  readonly statusReason: string | null
  readonly channel: string
  readonly to: string
  readonly content: unknown
  readonly intent: string | null
  readonly conversation: string | null
  readonly createdAt: string
  readonly sendAt: string | null
  readonly notAfter: string
  readonly sentAt: string | null
  readonly delivery: { readonly status: string; readonly at: string } | null
  readonly possibleDuplicateOf?: string | null
  /** At which its conversation must still be when it leaves; null: it leaves at any. */
  readonly conversationVersion?: number | null
}

export type ApiEntry =
  | { readonly direction: 'outbound'; readonly at: string; readonly message: ApiMessage }
  | {
      readonly direction: 'inbound'
      readonly at: string
      readonly inbound: { readonly id: string; readonly from: string; readonly text: string }
    }

export interface ApiPage<T> {
  readonly data: readonly T[]
  readonly nextCursor: string | null
}

export interface ApiConversationPage extends ApiPage<ApiEntry> {
  readonly version: number
}

export interface ApiReference {
  readonly id: string
  readonly status: string
}

export interface ApiCheck {
  readonly verdict: string
  readonly reason: string
  readonly problem: unknown
  readonly key: { readonly message: ApiReference | null } | null
  readonly intent: { readonly message: ApiReference | null } | null
  readonly duplicate: { readonly message: ApiReference | null } | null
  readonly approval: { readonly required: boolean }
  readonly provider: string | null
  readonly text: { readonly encoding: string; readonly characters: number; readonly segments: number } | null
}
