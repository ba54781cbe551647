/** Reading the JSON that a provider answered: it may be anything, and what is not there is null. */

export const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

export function textAt(value: unknown, name: string): string | null {
  const text = memberOf(value, name)
  return typeof text === 'string' && text !== '' ? text : null
}
