/**
 * RFC 8785 once more, from its text and by nobody's library: the referee of core/fingerprint.ts. Numbers are written by
 * way of their shortest digits (section 3.2.2.3, ECMAScript's Number::toString), strings code unit by code unit.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

export function canonical(value: Json): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return numberText(value)
  if (typeof value === 'string') return stringText(value)
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonical).join(',')}]`
  const members = Object.entries(value).toSorted(([a], [b]) => byCodeUnits(a, b))
  return `{${members.map(([name, member]) => `${stringText(name)}:${canonical(member)}`).join(',')}}`
}

/** Section 3.2.3: as arrays of UTF-16 code units. */
function byCodeUnits(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = a.charCodeAt(i) - b.charCodeAt(i)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const short: Readonly<Record<number, string>> = { 8: 'b', 9: 't', 10: 'n', 12: 'f', 13: 'r', 34: '"', 92: '\\' }

function stringText(text: string): string {
  let written = ''
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    const letter = short[code]
    if (letter !== undefined) written += `\\${letter}`
    else written += code < 0x20 ? `\\u${code.toString(16).padStart(4, '0')}` : text.charAt(i)
  }
  return `"${written}"`
}

/** Number::toString of the shortest digits that read back as the same double. */
function numberText(value: number): string {
  if (value === 0) return '0'
  if (value < 0) return `-${numberText(-value)}`
  const [digits, n] = shortest(value)
  const k = digits.length
  if (k <= n && n <= 21) return digits + '0'.repeat(n - k)
  if (n > 0 && n <= 21) return `${digits.slice(0, n)}.${digits.slice(n)}`
  if (n > -6 && n <= 0) return `0.${'0'.repeat(-n)}${digits}`
  const exponent = `${n > 0 ? '+' : '-'}${Math.abs(n - 1)}`
  return k === 1 ? `${digits}e${exponent}` : `${digits.slice(0, 1)}.${digits.slice(1)}e${exponent}`
}

/** @returns the digits s and n, where the value is 0.s × 10ⁿ. Of several that are as short: the closest, then the even one. */
function shortest(value: number): [string, number] {
  for (let precision = 0; precision <= 16; precision++) {
    const [mantissa = '', exponent = ''] = value.toExponential(precision).split('e')
    const near = BigInt(mantissa.replace('.', ''))
    const scale = Number(exponent) - precision
    const [best] = [near - 1n, near, near + 1n]
      .filter((digits) => Number(`${digits}e${scale}`) === value)
      .map((digits) => ({ digits, off: distance(digits, scale, value) }))
      .toSorted((a, b) => (a.off === b.off ? Number((a.digits & 1n) - (b.digits & 1n)) : a.off < b.off ? -1 : 1))
    if (best !== undefined) return [String(best.digits), scale + String(best.digits).length]
  }
  throw new Error(`no 17 digits read back as ${value}`)
}

/** How far digits × 10^scale lie from the value, exactly; in a unit that depends on scale and value only. */
function distance(digits: bigint, scale: number, value: number): bigint {
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, value)
  const biased = (bits.getUint32(0) >>> 20) & 0x7ff
  const fraction = bits.getBigUint64(0) & 0xf_ffff_ffff_ffffn
  const mantissa = biased === 0 ? fraction : fraction | 0x10_0000_0000_0000n
  const power = Math.max(biased, 1) - 1075
  const of = (n: number): bigint => BigInt(Math.max(n, 0))
  const off = digits * 10n ** of(scale) * 2n ** of(-power) - mantissa * 2n ** of(power) * 10n ** of(-scale)
  return off < 0n ? -off : off
}
