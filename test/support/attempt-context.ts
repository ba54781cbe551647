/** One attempt of one message, for tests of adapters. */
import type { Capabilities } from '../../src/core/capabilities.ts'
import type { MessageRequest } from '../../src/core/message-content.ts'
import type { AttemptContext, CallSettings, HttpAdapter } from '../../src/providers/provider.ts'

export const attemptContext = (more: Partial<AttemptContext> = {}): AttemptContext => ({
  account: 'default',
  provider: 'some-provider',
  messageId: 'msg_1',
  createdAt: new Date('2026-07-01T12:00:00.250Z'),
  attemptId: 'att_1',
  attemptNumber: 1,
  startedAt: new Date('2026-07-01T12:00:01.750Z'),
  traceparent: null,
  ...more,
})

/** The whole request of an attempt: what is rendered, and what is made afresh for each call. */
export function wholeRequest<Settings extends CallSettings>(
  adapter: HttpAdapter<Settings>,
  message: MessageRequest,
  settings: Settings,
  attempt: AttemptContext,
) {
  const request = adapter.render(message, settings, attempt)
  const headers: Readonly<Record<string, string>> = {
    ...request.headers,
    ...adapter.authorise(request, settings, attempt.startedAt),
  }
  return { ...request, headers, body: request.body ?? '' }
}

/** What a provider without any means against duplicates declares. */
export const blindCapabilities = (acceptance: Capabilities['acceptance']): Capabilities => ({
  channels: ['sms'],
  deduplication: null,
  lookup: null,
  lateEvidence: 'none',
  acceptance,
})
