/**
 * JSON, strictly (RFC 8259 with RFC 7493's advice): what two parsers could read differently is refused, for the message
 * that is checked must be the message that is sent. `JSON.parse` reads; one pass over what it read finds the rest.
 *
 * J1. Refused: duplicate members, `__proto__`, integers beyond 2^53, numbers too large to be read, lone
 *     surrogates, U+0000, nesting deeper than 64, bytes that are not UTF-8.
 */
export type StrictJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly pointer: string; readonly detail: string }

const maxDepth = 64
const utf8 = new TextDecoder('utf-8', { fatal: true })

export function parseStrictJson(bytes: Uint8Array): StrictJson {
  let text: string
  let value: unknown
  try {
    text = utf8.decode(bytes)
  } catch {
    return { ok: false, pointer: '', detail: 'The body is not UTF-8.' }
  }
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, pointer: '', detail: 'The body is not JSON.' }
  }
  const seen = { members: 0 }
  const found = fault(value, 0, seen)
  if (found !== null) return { ok: false, ...found }
  // A member that came twice is in the text twice and in the value once.
  if (seen.members !== countMembers(text))
    return { ok: false, pointer: '', detail: 'A member name stands twice in one object.' }
  return { ok: true, value }
}

interface Fault {
  readonly pointer: string
  readonly detail: string
}

const tooDeep: Fault = { pointer: '', detail: `The body is nested deeper than ${maxDepth} levels.` }

/** What is wrong with a value; its pointer begins there, and is made on the way out: of most bodies none is needed. */
function fault(value: unknown, depth: number, seen: { members: number }): Fault | null {
  switch (typeof value) {
    case 'string':
      return textFault(value)
    case 'number':
      return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
        ? null
        : { pointer: '', detail: 'This number cannot be read exactly; send it as a string.' }
    case 'object':
      if (value === null) return null
      return depth >= maxDepth ? tooDeep : memberFault(value as Record<string, unknown>, depth, seen)
    default:
      return null
  }
}

function memberFault(value: Record<string, unknown>, depth: number, seen: { members: number }): Fault | null {
  const isArray = Array.isArray(value)
  for (const name of Object.keys(value)) {
    if (!isArray) {
      seen.members++
      if (name === '__proto__') return { pointer: '', detail: 'A member must not be named __proto__.' }
      const named = textFault(name)
      if (named !== null) return named
    }
    const found = fault(value[name], depth + 1, seen)
    if (found === null) continue
    if (found === tooDeep) return found // it names no place
    return { ...found, pointer: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}${found.pointer}` }
  }
  return null
}

function textFault(text: string): Fault | null {
  if (!text.isWellFormed()) return { pointer: '', detail: 'A text holds half of a surrogate pair.' }
  return text.includes('\u0000') ? { pointer: '', detail: 'A text holds the character U+0000.' } : null
}

/** Members of all objects in valid JSON: colons outside strings. */
function countMembers(json: string): number {
  let members = 0
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i)
    if (code === 0x3a) members++
    else if (code === 0x22) i = endOfString(json, i)
  }
  return members
}

function endOfString(json: string, start: number): number {
  for (let i = start + 1; ; i++) {
    const code = json.charCodeAt(i)
    if (code === 0x5c) i++
    else if (code === 0x22) return i
  }
}
