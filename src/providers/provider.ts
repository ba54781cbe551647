/**
 * The port to providers. An adapter is data and pure functions: its capabilities, its code table, how a message is
 * rendered into a request, and how its answers are read. Everything else (the call, its time-outs, the proof of what left
 * this process) is done once, in http-outcome.ts; a provider is an adapter with settings, made by registry.ts. An adapter
 * that speaks no HTTP declares the same, and makes its calls itself (`create`).
 *
 * P1. `send` gives an Outcome and throws only for bugs.
 * P2. Adapters are pure; what an adapter declares in `capabilities` is all that the engine knows of it.
 * P3. Evidence never holds what a provider wrote in free text: it may repeat the recipient.
 */
import type { TObject } from 'typebox'
import type { buildConnector } from 'undici'
import type { Capabilities } from '../core/capabilities.ts'
import type { Environment, MessageRequest } from '../core/message-content.ts'
import type { LookResult, Outcome } from '../core/outcome.ts'

/** One attempt as the adapter sees it. `messageId` and `createdAt` are the same for all attempts of a message. */
export interface AttemptContext {
  /** Whose message it is; never sent. */
  readonly account: string
  /** The provider's name in the configuration. */
  readonly provider: string
  readonly messageId: string
  readonly createdAt: Date
  readonly attemptId: string
  readonly attemptNumber: number
  readonly startedAt: Date
  readonly traceparent: string | null
}

/** A request without what is made afresh for each call: kept as it is where it may be sent again under one key. */
export interface RenderedRequest {
  readonly origin: string
  readonly method: 'POST' | 'GET'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Null: none. */
  readonly body: string | null
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The body as far as it came. */
  readonly body: string
  /** The body was read to its end. */
  readonly complete: boolean
  /** `Retry-After`, as milliseconds from now; null if absent or unreadable. */
  readonly retryAfterMs: number | null
}

export type CodeMeaning =
  | 'rejected' /** this message, for good */
  | 'refused_for_now' /** not accepted; try later */
  | 'credentials' /** about us, not the message */
  | 'unknown' /** it may have been accepted */
  | 'accepted_before' /** a repeat of a request that was accepted */
  | 'key_in_use' /** the first request under this key still runs: ask again */
  | 'key_reused' /** another request has this key: whether that one was accepted is not said */

/** What a documented error code of a provider means for the message. */
export interface CodeRule {
  readonly means: CodeMeaning
  /** HTTP statuses under which the provider documents it. */
  readonly statuses: readonly number[]
  /** The provider's own wording. */
  readonly wording: string
  /** For so long after it, calls to the same URL are refused as this one was, without being made. */
  readonly refusesUrlForMs?: number
  /** The pause that it documents, where the answer itself names none: a limit that ends at midnight, say. */
  readonly pauseMs?: (at: Date) => number
}

/** How the answers of a provider are read: all that http-outcome.ts needs to judge one. */
export interface AnswerRules {
  readonly isAccepted: (status: number, body: unknown) => boolean
  /** The provider's message id in its documented answer, else null. */
  readonly messageIdOf: (body: unknown, headers: HttpAnswer['headers']) => string | null
  /** The code in the provider's documented error body; null if this is not one (a proxy's page, say). */
  readonly errorCodeOf: (body: unknown, status: number, headers: HttpAnswer['headers']) => string | null
  readonly codes: Readonly<Record<string, CodeRule>>
}

/** Settings that every HTTP adapter has; times in milliseconds. */
export interface CallSettings {
  readonly connectTimeoutMs: number
  /** From the first byte written to the end of the answer. */
  readonly answerTimeoutMs: number
  /** Calls at one time; more wait outside, in the data base. */
  readonly concurrency: number
}

/** What a look-up is about. */
export type LookContext = Pick<AttemptContext, 'messageId' | 'createdAt' | 'startedAt'>

/** How a provider is asked what it accepted under a reference of ours. */
export interface LookupCall<Settings> {
  readonly render: (message: MessageRequest, settings: Settings, look: LookContext) => RenderedRequest
  /** How many it shows, and the id of the first; null if this is not its documented answer. */
  readonly read: (body: unknown, look: LookContext) => { count: number; providerMessageId: string | null } | null
}

/** A request that came in: not a byte of it is believed yet. */
export interface IncomingWebhook {
  readonly rawBody: Buffer
  /** By small names; what came several times is a list, or joined. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Path and query, as they came. */
  readonly url: string
  readonly query: URLSearchParams
}

/** What a provider tells of a message after its answer, or before. */
export interface WebhookEvent {
  /** The provider's id of the event, where it gives one that its signature covers; else made of what makes it that event. */
  readonly eventId: string
  /** Our id of the message (msg_…), as the provider repeats it. What has none that is ours is not kept. */
  readonly messageId: string | null
  /** Our id of the attempt (att_…), where the provider repeats it. */
  readonly attemptId: string | null
  readonly providerMessageId: string | null
  /** `accepted`: the provider has it, and no more is known. */
  readonly kind: 'accepted' | 'delivered' | 'undelivered'
  /** Null: it does not say when. */
  readonly at: Date | null
  /** The provider's code, never its text. */
  readonly code: string | null
}

/** What a person wrote back. */
export interface InboundReply {
  /** As of a WebhookEvent. */
  readonly eventId: string
  /** Who wrote, and whereto: an address, a number, a user; a number of ours, a channel, a group. */
  readonly from: string
  readonly to: string | null
  /** What a message of ours was sent to, if this may be the answer to it: the person, or the place where it was written. */
  readonly sentTo: readonly string[]
  readonly text: string
  /** Null: it is not said when. */
  readonly at: Date | null
  /** Our id of the message that it answers, or the provider's; null where none is named. */
  readonly inReplyTo: string | null
}

export type ParsedWebhook =
  | {
      readonly events: readonly WebhookEvent[]
      readonly replies: readonly InboundReply[]
      /** What the provider wants to read in the answer. */
      readonly answer?: { readonly contentType: string; readonly body: string }
    }
  /** `stale`: signed, but too long ago to be taken in. `unreadable`: signed, and not what the provider documents. */
  | { readonly refused: 'forged' | 'stale' | 'unreadable' }

/** How a provider's webhooks are read. */
export interface WebhookRules<Settings> {
  /** The setting without which none can be verified or asked for; null: all are there. */
  readonly lacks: (settings: Settings) => string | null
  readonly parse: (request: IncomingWebhook, settings: Settings, now: Date) => ParsedWebhook
}

/** What an adapter declares, whatever it speaks. */
export interface AdapterFacts<Settings> {
  readonly adapter: string
  /** What the provider can do; settings may say more of it. */
  readonly capabilities: Capabilities | ((settings: Settings) => Capabilities)
  /** The settings in the configuration file, `adapter` left out; strict, with defaults. */
  readonly settings: TObject
}

export interface HttpAdapter<Settings extends CallSettings> extends AdapterFacts<Settings> {
  /** How connections are made, where callers and not the configuration say whereto. */
  readonly connector?: (settings: Settings) => buildConnector.connector
  /** What makes it this provider and no other: origin and account, else the credential. Only a digest of it is kept. */
  readonly identity: (settings: Settings) => readonly string[]
  /** A sentence that names the limit which this message breaks, or null. Looked at for new keys only. */
  readonly limitBroken: (message: MessageRequest, settings: Settings) => { pointer: string; detail: string } | null
  readonly render: (message: MessageRequest, settings: Settings, attempt: AttemptContext) => RenderedRequest
  /** Headers that are made afresh for each call: credentials, and signatures with their time. */
  readonly authorise: (request: RenderedRequest, settings: Settings, at: Date) => Readonly<Record<string, string>>
  readonly answers: AnswerRules
  /** Present where `capabilities.lookup` is declared. */
  readonly lookup?: LookupCall<Settings>
  /** Absent: the provider tells nothing later, or nothing of use. */
  readonly webhooks?: WebhookRules<Settings>
}

/** An adapter of another protocol than HTTP: it makes its calls itself. */
export interface OwnAdapter<Settings> extends AdapterFacts<Settings> {
  readonly create: (name: string, environment: Environment, settings: Settings) => Provider
}

/** Asked immediately before the first byte: may this call still begin? (engine.md, write gate) */
export type WriteGate = () => boolean

export interface Provider {
  /** The name in the configuration: used in routes and in `provider`. */
  readonly name: string
  readonly adapter: string
  readonly environment: Environment
  readonly capabilities: Capabilities
  /** A digest of adapter, origin and account (else credential): see core/recovery.ts. */
  readonly identity: string
  /** The longest that a call may take: connecting and answering. Leases are set from it. */
  readonly callMs: number
  readonly concurrency: number
  limitBroken(message: MessageRequest): { pointer: string; detail: string } | null
  /** The request as it would be sent, for `send` to repeat byte for byte; null if the adapter could make none. */
  render(message: MessageRequest, attempt: AttemptContext): string | null
  /** @param rendered from `render`; null: made afresh */
  send(message: MessageRequest, attempt: AttemptContext, gate: WriteGate, rendered: string | null): Promise<Outcome>
  /** Asks what it accepted under our reference. Only of a provider that declares a look-up. */
  look(message: MessageRequest, look: LookContext): Promise<LookResult>
  /** What a webhook of it tells. Pure. Or, in words, why none is taken. */
  readonly parseWebhook: ((request: IncomingWebhook, now: Date) => ParsedWebhook) | { readonly lacks: string }
  close(): Promise<void>
}
