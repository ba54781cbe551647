/** One attempt of one message, for tests of adapters. */
import type { AttemptContext } from '../../src/providers/provider.ts'

export const attemptContext = (more: Partial<AttemptContext> = {}): AttemptContext => ({
  account: 'default',
  messageId: 'msg_1',
  createdAt: new Date('2026-07-01T12:00:00.250Z'),
  attemptNumber: 1,
  startedAt: new Date('2026-07-01T12:00:01.750Z'),
  traceparent: null,
  ...more,
})
