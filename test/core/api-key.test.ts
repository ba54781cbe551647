import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { apiKeyText, apiScopes, kindFor, parseApiKey, scopesOfKind, secretHash } from '../../src/core/api-key.ts'

const secret = 'aB3_-'.repeat(8)

describe('an API key', () => {
  test.each([
    ['live', `so_live_k1_${secret}`, 'k1'],
    ['test', `so_test_k1_${secret}`, 'k1'],
    ['live', `so_live_0197a1b2-c3d4_${secret}`, '0197a1b2-c3d4'],
  ] as const)('names its environment (%s), its id and its secret', (environment, token, id) => {
    expect(parseApiKey(token)).toEqual({ environment, id, secret })
  })

  test('may have underscores in its secret, not in its id', () => {
    expect(parseApiKey(`so_live_k_${'_'.repeat(32)}`)).toEqual({ environment: 'live', id: 'k', secret: '_'.repeat(32) })
  })

  test.each([
    ['nothing', ''],
    ['another word', `sk_live_k1_${secret}`],
    ['another environment', `so_prod_k1_${secret}`],
    ['an environment in capitals', `so_LIVE_k1_${secret}`],
    ['no environment', `so_k1_${secret}`],
    ['no id', `so_live__${secret.slice(0, 8)}`],
    ['no secret', 'so_live_k1_'],
    ['a short secret', `so_live_k1_${'a'.repeat(31)}`],
    ['a long secret', `so_live_k1_${'a'.repeat(129)}`],
    ['a long id', `so_live_${'a'.repeat(65)}_${secret}`],
    ['a space in front', ` so_live_k1_${secret}`],
    ['a line feed behind', `so_live_k1_${secret}\n`],
    ['a character that is none of a secret', `so_live_k1_${secret}!`],
    ['a letter beyond ASCII', `so_live_k1_${secret}\u00e9`],
    ['a quote in its id', `so_live_k'1_${secret}`],
  ])('is not a text with %s', (_, token) => {
    expect(parseApiKey(token)).toBeUndefined()
  })

  test('that is well formed gives back what it was made of', () => {
    const ids = fc.stringMatching(/^[A-Za-z0-9-]{1,64}$/)
    const secrets = fc.stringMatching(/^[A-Za-z0-9_-]{32,128}$/)
    fc.assert(
      fc.property(fc.constantFrom('live' as const, 'test' as const), ids, secrets, (environment, id, made) => {
        const parts = { environment, id, secret: made }
        expect(apiKeyText(parts)).toBe(`so_${environment}_${id}_${made}`)
        expect(parseApiKey(apiKeyText(parts))).toEqual(parts)
      }),
    )
  })
})

describe('the kinds of holders', () => {
  test('A1 only a person approves or settles, and no agent has keys made', () => {
    expect(scopesOfKind).toEqual({
      service: ['send', 'read', 'admin'],
      agent: ['send', 'read'],
      person: [...apiScopes],
    })
  })

  test.each([
    [['send', 'read'], 'service'],
    [['send', 'admin'], 'service'],
    [[], 'service'],
    [['approve'], 'person'],
    [['send', 'resolve'], 'person'],
    [apiScopes, 'person'],
  ] as const)('a key for %j without a kind is one of a %s', (scopes, kind) => {
    expect(kindFor(scopes)).toBe(kind)
    expect(scopes.every((scope) => scopesOfKind[kind].includes(scope))).toBe(true)
  })
})

test('U1 of a secret SHA-256 is kept, and nothing of the secret', () => {
  const hash = secretHash(secret)
  expect(hash.toString('hex')).toBe(createHash('sha256').update(secret, 'utf8').digest('hex'))
  expect(hash).toHaveLength(32)
  expect(secretHash(`${secret}x`).equals(hash)).toBe(false)
})

test('the scopes are those of api.md', () => {
  expect(apiScopes).toEqual(['send', 'read', 'approve', 'resolve', 'admin'])
})
