import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { idFromUuid, idKinds, uuidFromId, type IdKind } from '../../src/core/ids.ts'

const kinds = Object.keys(idKinds) as IdKind[]
const uuids = fc.uuid()

describe('a public id', () => {
  test.each([
    ['message', 'msg_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b'],
    ['attempt', 'att_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b'],
    ['event', 'evt_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b'],
  ] as const)('of a kind %s is its prefix and the digits of its UUID', (kind, id) => {
    expect(idFromUuid(kind, '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b')).toBe(id)
    expect(uuidFromId(kind, id)).toBe('0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b')
  })

  test('I1 names the UUID that it was made of', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), uuids, (kind, uuid) => {
        expect(uuidFromId(kind, idFromUuid(kind, uuid))).toBe(uuid)
      }),
    )
  })

  test('I2 of another kind is not taken', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.constantFrom(...kinds), uuids, (kind, asked, uuid) => {
        expect(uuidFromId(asked, idFromUuid(kind, uuid))).toBe(kind === asked ? uuid : undefined)
      }),
    )
  })

  test.each([
    '',
    'msg_',
    'msg',
    '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
    '0197a1b2c3d47e5f8a9b0c1d2e3f4a5b',
    'msg_0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
    'msg_0197A1B2C3D47E5F8A9B0C1D2E3F4A5B',
    'msg_0197a1b2c3d47e5f8a9b0c1d2e3f4a5',
    'msg_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b0',
    'msg_0197a1b2c3d47e5f8a9b0c1d2e3f4a5g',
    ' msg_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b',
    'msg_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b\n',
    'MSG_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b',
    "msg_' OR 1=1 --",
    'msg_\u0000',
  ])('I2 is not %j', (text) => {
    expect(uuidFromId('message', text)).toBeUndefined()
  })

  test('I2 of any text at all is an id or undefined, never an exception', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.string({ unit: 'binary' }), (kind, text) => {
        expect(uuidFromId(kind, text)).toBeUndefined()
      }),
    )
  })

  test('sorts as its UUID does: by age', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 7 }), fc.uuid({ version: 7 }), (a, b) => {
        expect(idFromUuid('message', a) < idFromUuid('message', b)).toBe(a < b)
      }),
    )
  })
})
