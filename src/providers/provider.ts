/**
 * The port to providers. An adapter is data and pure functions: its capabilities, its code table, how a message is
 * rendered into a request, and how its answers are read. Everything else (the call, its time-outs, the proof of what left
 * this process) is done once, in http-outcome.ts; a provider is an adapter with settings, made by registry.ts.
 *
 * P1. `send` gives an Outcome and throws only for bugs.
 * P2. Adapters are pure; what an adapter declares in `capabilities` is all that the engine knows of it.
 * P3. Evidence never holds what a provider wrote in free text: it may repeat the recipient.
 */
import type { TObject } from 'typebox'
import type { buildConnector } from 'undici'
import type { Channel, Environment, MessageRequest } from '../core/message-content.ts'
import type { Outcome } from '../core/outcome.ts'

export interface Capabilities {
  readonly channels: readonly Channel[]
  /** What the provider offers against duplicates. `blind`: nothing, so a lost answer is never followed by a call. */
  readonly deduplication: 'blind'
  /** What proves acceptance: the status line alone, or the documented body behind it. */
  readonly acceptance: 'status' | 'body'
}

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

export interface RenderedRequest {
  readonly origin: string
  readonly method: 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
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

/** What a documented error code of a provider means for the message. */
export interface CodeRule {
  readonly means: 'rejected' | 'refused_for_now' | 'credentials' | 'unknown'
  /** HTTP statuses under which the provider documents it. */
  readonly statuses: readonly number[]
  /** The provider's own wording. */
  readonly wording: string
  /** For so long after it, calls to the same URL are refused as this one was, without being made. */
  readonly refusesUrlForMs?: number
}

/** How the answers of a provider are read: all that http-outcome.ts needs to judge one. */
export interface AnswerRules {
  readonly isAccepted: (status: number) => boolean
  /** The provider's message id in its documented answer, else null. */
  readonly messageIdOf: (body: unknown) => string | null
  /** The code in the provider's documented error body; null if this is not one (a proxy's page, say). */
  readonly errorCodeOf: (body: unknown, status: number) => string | null
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

export interface HttpAdapter<Settings extends CallSettings> {
  readonly adapter: string
  readonly capabilities: Capabilities
  /** How connections are made, where callers and not the configuration say whereto. */
  readonly connector?: (settings: Settings) => buildConnector.connector
  /** The settings in the configuration file, `adapter` left out; strict, with defaults. */
  readonly settings: TObject
  /** A sentence that names the limit which this message breaks, or null. Looked at for new keys only. */
  readonly limitBroken: (message: MessageRequest, settings: Settings) => { pointer: string; detail: string } | null
  readonly render: (message: MessageRequest, settings: Settings, attempt: AttemptContext) => RenderedRequest
  readonly answers: AnswerRules
}

/** Asked immediately before the first byte: may this call still begin? (engine.md, write gate) */
export type WriteGate = () => boolean

export interface Provider {
  /** The name in the configuration: used in routes and in `provider`. */
  readonly name: string
  readonly adapter: string
  readonly environment: Environment
  readonly capabilities: Capabilities
  /** The longest that a call may take: connecting and answering. Leases are set from it. */
  readonly callMs: number
  readonly concurrency: number
  limitBroken(message: MessageRequest): { pointer: string; detail: string } | null
  send(message: MessageRequest, attempt: AttemptContext, gate: WriteGate): Promise<Outcome>
  close(): Promise<void>
}
