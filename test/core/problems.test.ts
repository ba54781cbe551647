import { describe, expect, test } from 'vitest'
import { problemBody, problems, problemTypes, problemUri, type ProblemType } from '../../src/core/problems.ts'

/** api.md: the table of statuses, the table of cases, and "Acting". */
const contract: Readonly<Record<string, readonly [number, boolean]>> = {
  'invalid-request': [400, false],
  'idempotency-key-required': [400, false],
  'idempotency-key-invalid': [400, false],
  'idempotency-key-timestamp': [400, false],
  'idempotency-key-reused': [422, false],
  'result-expired': [409, false],
  'key-void': [409, false],
  'possible-duplicate': [409, false],
  'no-provider': [422, false],
  'store-unavailable': [503, true],
  overloaded: [503, true],
  'in-progress': [409, true],
  'outcome-unknown': [504, false],
  'message-rejected': [422, false],
  'message-expired': [422, false],
  'message-canceled': [409, false],
  'key-never-seen': [404, true],
  'too-late': [409, false],
  'already-decided': [409, false],
  'unsupported-media-type': [415, false],
  'payload-too-large': [413, false],
  'not-found': [404, false],
  unauthorized: [401, false],
  forbidden: [403, false],
}

describe('the catalogue of problems', () => {
  test.each(Object.entries(contract))('has %s as api.md wants it', (type, [status, retryable]) => {
    expect(problems).toHaveProperty(type)
    expect(problems[type as ProblemType]).toMatchObject({ status, retryable })
  })

  test.each(problemTypes)('gives %s a status, a title without a stop and advice that ends in one', (type) => {
    const { status, title, advice, retryable } = problems[type]
    expect(type).toMatch(/^[a-z]+(-[a-z]+)*$/)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(600)
    expect(title).toMatch(/^[A-Z].*[^.]$/)
    expect(advice).toMatch(/^[A-Z].*\.$/)
    expect(typeof retryable).toBe('boolean')
  })

  test('lists each type once', () => {
    expect(new Set(problemTypes).size).toBe(problemTypes.length)
    expect(problemTypes).toEqual(Object.keys(problems))
    expect(new Set(problemTypes.map((type) => problems[type].title)).size).toBe(problemTypes.length)
  })

  const may5xx = problemTypes.filter((type) => problems[type].status >= 500)
  test.each(may5xx)('rule 13: %s may be repeated with the same key, unless its outcome is lost', (type) => {
    const { retryable, advice } = problems[type]
    expect([retryable, /same key/.test(advice)]).toEqual(type === 'outcome-unknown' ? [false, false] : [true, true])
  })

  test.each([...may5xx, 'in-progress'] as const)(
    '%s never advises another key, for something may have been sent',
    (type) => {
      const { advice } = problems[type]
      const warnings = /(do not|never) [^.:;]*(new|another) (key|one)/gi
      expect(advice.replaceAll(warnings, '')).not.toMatch(/(new|another|other) (key|one)/i)
    },
  )
})

describe('a problem', () => {
  test.each(problemTypes)('%s has every member of RFC 9457, and retryable', (type) => {
    const body = problemBody(type, '/v1/messages/msg_1', null)
    const { status, title, advice, retryable } = problems[type]
    const instance = '/v1/messages/msg_1'
    expect(body).toEqual({ type: `/problems/${type}`, title, status, detail: advice, instance, retryable })
    expect(problemUri(type)).toBe(body.type)
  })

  test('says what happened before it says what to do', () => {
    const { detail } = problemBody('too-late', '/x', 'The message is sent.')
    expect(detail).toBe(`The message is sent. ${problems['too-late'].advice}`)
  })

  test('carries what its kind adds, and where nothing is known of the key no `sent`', () => {
    const errors = [{ pointer: '/to', detail: 'is missing' }]
    expect(problemBody('invalid-request', '/x', null, { errors })).toMatchObject({ errors })
    expect(problemBody('invalid-request', '/x', null, { errors })).not.toHaveProperty('sent')
    expect(problemBody('key-void', '/x', null, { sent: 'no' })).toMatchObject({ sent: 'no', status: 409 })
  })
})
