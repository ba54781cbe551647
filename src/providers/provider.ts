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
  readonly messageId: string
  readonly createdAt: Date
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
  close(): Promise<void>
}
