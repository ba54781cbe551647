/** What the console's modules speak of: what it reads of /v1, and what it remembers. Types alone; a browser never sees this file. */

export type Status = 'held' | 'scheduled' | 'queued' | 'sending' | 'unknown' | 'sent' | 'failed' | 'canceled'
export type Channel = 'sms' | 'email' | 'chat' | 'push' | 'webhook'

export interface Approval {
  /** `ended`: nobody decided, and it is no longer held. */
  readonly status: 'pending' | 'approved' | 'declined' | 'ended'
  readonly reason: 'approval' | 'duplicate'
  readonly by: string | null
  readonly at: string | null
}

export interface Message {
  readonly id: string
  readonly environment: 'live' | 'test'
  readonly status: Status
  readonly statusReason: string | null
  readonly channel: Channel
  readonly to: string
  readonly from: string | null
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  readonly replyTo?: string | null
  /** Hostile: whoever holds a key that may send has written it. Its form depends on the channel. */
  readonly content: Readonly<Record<string, unknown>>
  readonly conversation: string | null
  readonly conversationVersion: number | null
  readonly reference: string | null
  readonly intent: string | null
  readonly idempotencyKey: string
  readonly keySource: 'client' | 'derived'
  readonly fingerprint: string
  readonly possibleDuplicateOf: string | null
  readonly approval: Approval | null
  /** Id of an API key; null: it was not noted then. */
  readonly sentBy: string | null
  readonly provider: string
  readonly providerMessageId: string | null
  readonly attempts: number
  readonly sendAt: string | null
  readonly notAfter: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly sentAt: string | null
  readonly delivery: { readonly status: string; readonly at: string; readonly code: string | null } | null
  readonly resolution: Resolution | null
  readonly plan: {
    readonly step: 'replay' | 'look'
    readonly at: string
    readonly givesUpAt: string
    readonly steps: number
    readonly lastEvidence: string
  } | null
  readonly openAttempts: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
}

export interface Resolution {
  readonly by: string
  readonly at: string
  readonly attempt: string
  readonly outcome: 'sent' | 'not_sent'
  readonly apiKey: string | null
  readonly evidence: string | null
}

export interface Page<T> {
  readonly data: readonly T[]
  readonly nextCursor: string | null
}

export interface TimelineEntry {
  readonly id: string
  readonly type: string
  readonly at: string
  readonly attempt: string | null
  readonly data: Readonly<Record<string, unknown>>
}

export interface Inbound {
  readonly id: string
  readonly source: string
  readonly from: string
  readonly text: string
  readonly occurredAt: string | null
  readonly receivedAt: string
}

export type Entry =
  | { readonly direction: 'outbound'; readonly at: string; readonly message: Message }
  | { readonly direction: 'inbound'; readonly at: string; readonly inbound: Inbound }

export interface ConversationPage extends Page<Entry> {
  readonly version: number
}

export interface KeyState {
  readonly key: string
  readonly source: 'client' | 'derived'
  readonly firstSeenAt: string
  readonly sent: 'yes' | 'no' | 'maybe'
  /** Of one whose result was erased, `id` and `status` alone. */
  readonly message: Message | { readonly id: string; readonly status: Status } | null
}

export interface Problem {
  /** Its name in the catalogue, without the path. */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly message?: { readonly id: string; readonly status: Status }
  /** Of `already-decided`: of an approval, or of a verdict. */
  readonly decision?:
    | { readonly decision: 'approved' | 'declined'; readonly by: string; readonly at: string }
    | Resolution
}

/** How a request ended, as far as this page can know. */
export type Answer<T> =
  | { readonly kind: 'ok'; readonly body: T }
  /** Refused for good: repeating it is of no use. */
  | { readonly kind: 'refused'; readonly problem: Problem }
  /** No answer, or one that says "again": it may or may not have been done. */
  | { readonly kind: 'lost'; readonly why: string; readonly retryAfterMs: number | null }

export type ListName = 'held' | 'unknown'
export type SearchBy = 'to' | 'reference' | 'key'

export type Route =
  | { readonly view: ListName; readonly id: string | null }
  | { readonly view: 'message'; readonly id: string }
  | { readonly view: 'search'; readonly by: SearchBy; readonly value: string; readonly id: null }

export interface List {
  /** Null until it was first read. Newest last. */
  ids: readonly string[] | null
  /** There are older ones than these. */
  hasMore: boolean
  refused: Problem | null
}

/** Of the message that is open. */
export interface Detail {
  readonly id: string
  events: readonly TimelineEntry[] | null
  conversation: { version: number; entries: Map<string, Entry>; olderCursor: string | null } | null
  refused: Problem | null
  /** What could not be read beside the message itself. */
  conversationRefused: Problem | null
}

export interface Search {
  by: SearchBy
  value: string
  ids: readonly string[] | null
  hasMore: boolean
  key: KeyState | null
  refused: Problem | null
}

/** Something that a person asked for, from the press of the button on. */
export interface Act<Asked> {
  readonly asked: Asked
  readonly phase: 'running' | 'lost' | 'refused' | 'done'
  readonly why?: string
  readonly problem?: Problem
}

export interface DecisionAsked {
  readonly verb: 'approve' | 'decline'
  /** Of what was shown when the button was pressed. */
  readonly fingerprint: string
}

export interface VerdictAsked {
  readonly attempt: string
  readonly outcome: 'sent' | 'not_sent'
  readonly evidence: string
  readonly providerMessageId?: string
  readonly resend?: true
}

/** A verdict as it is chosen; `again`: not sent, and to be sent again. */
export type Choice = 'sent' | 'not_sent' | 'again'

/** What was chosen and typed of a verdict, so that it is there again after another view. */
export interface Draft {
  readonly choice?: Choice
  readonly evidence?: string
  readonly providerMessageId?: string
}

export interface Session {
  readonly keyId: string
  readonly environment: 'live' | 'test'
}

export interface State {
  session: Session | null
  signIn: { readonly busy: boolean; readonly said: string | null }
  route: Route
  /** By id, each as the latest answer told it. */
  messages: Map<string, Message>
  lists: Record<ListName, List>
  detail: Detail | null
  search: Search | null
  decisions: Map<string, Act<DecisionAsked>>
  /** By attempt. */
  verdicts: Map<string, Act<VerdictAsked>>
  /** By attempt. */
  drafts: Map<string, Draft>
  connection: { readonly ok: true } | { readonly ok: false; readonly why: string; readonly againAtMs: number }
}
