/** How an SMS is cut (3GPP TS 23.038, 6.2.1: the default alphabet and its extension; 23.040, 9.2.3.24: the header of parts). */
import { expect, test } from 'vitest'
import { smsLength } from '../../src/core/sms-length.ts'

const lengthOf = (text: string): string => {
  const { encoding, characters, segments } = smsLength(text)
  return `${encoding} ${characters} ${segments}`
}

test.each([
  ['one character', 'a', 'GSM-7 1 1'],
  ['160 of GSM-7', 'a'.repeat(160), 'GSM-7 160 1'],
  ['161 of GSM-7', 'a'.repeat(161), 'GSM-7 161 2'],
  ['306 of GSM-7: two parts of 153', 'a'.repeat(306), 'GSM-7 306 2'],
  ['307 of GSM-7', 'a'.repeat(307), 'GSM-7 307 3'],
  ['a euro sign, which counts two', '€', 'GSM-7 2 1'],
  ['80 euro signs', '€'.repeat(80), 'GSM-7 160 1'],
  ['81 euro signs', '€'.repeat(81), 'GSM-7 162 2'],
  ['159 and a euro sign', `${'a'.repeat(159)}€`, 'GSM-7 161 2'],
  ['an escape that would be parted from its character', `${'a'.repeat(152)}€${'a'.repeat(152)}`, 'GSM-7 306 3'],
  ['70 of UCS-2', 'ж'.repeat(70), 'UCS-2 70 1'],
  ['71 of UCS-2', 'ж'.repeat(71), 'UCS-2 71 2'],
  ['134 of UCS-2: two parts of 67', 'ж'.repeat(134), 'UCS-2 134 2'],
  ['135 of UCS-2', 'ж'.repeat(135), 'UCS-2 135 3'],
  ['an emoji, which counts two', '😀', 'UCS-2 2 1'],
  ['35 emoji', '😀'.repeat(35), 'UCS-2 70 1'],
  ['36 emoji', '😀'.repeat(36), 'UCS-2 72 2'],
  ['an emoji that would be parted', `${'ж'.repeat(66)}😀${'ж'.repeat(66)}`, 'UCS-2 134 3'],
  ['one character that makes all the others UCS-2', `${'a'.repeat(70)}ж`, 'UCS-2 71 2'],
  ['a euro sign beside it, which counts one then', '€ж', 'UCS-2 2 1'],
  ['a line break of two', '\r\n', 'GSM-7 2 1'],
  ['a letter and its accent apart', 'e\u0301', 'UCS-2 2 1'],
])('%s', (_, text, expected) => {
  expect(lengthOf(text)).toBe(expected)
})

/** Table 1 of 23.038, row by row (0x1B is the escape), and the extension. */
const basic =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'
const extension = '\f^{}\\[~]|€'

test('every character of the two planes is of the alphabet, of the extension, or makes a text UCS-2', () => {
  expect([basic.length, extension.length]).toEqual([127, 10])
  const wrong: string[] = []
  for (let code = 0; code < 0x2_0000; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const character = String.fromCodePoint(code)
    const [encoding, units] = basic.includes(character)
      ? ['GSM-7', 1]
      : extension.includes(character)
        ? ['GSM-7', 2]
        : ['UCS-2', character.length]
    if (lengthOf(character) !== `${encoding} ${units} 1`) wrong.push(character)
  }
  expect(wrong).toEqual([])
})

test.each(['ç', '`', '\t', 'á', 'ı', '“', '–', '…', 'Ω\u0301'])('%j is none of GSM-7', (character) => {
  expect(smsLength(character).encoding).toBe('UCS-2')
})

test('a text of a million characters takes no longer than its length', () => {
  const started = performance.now()
  expect(lengthOf('a'.repeat(1_000_000))).toBe('GSM-7 1000000 6536')
  expect(lengthOf('😀'.repeat(500_000))).toBe('UCS-2 1000000 15152')
  expect(performance.now() - started).toBeLessThan(3_000)
})
