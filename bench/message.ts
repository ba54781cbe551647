/**
 * What is sent: one SMS a key, as the load writes it, and the same as an expression of SQL for rows that are filled in.
 * The key stands in the text, so that the provider stub sees a duplicate whatever program sent it.
 */
const to = '+447700900123'
const text = 'Your parcel is on its way'

/** @param changed another message under the same key */
export const bodyOf = (key: string, changed = false): string =>
  `{"channel":"sms","to":"${to}","content":{"text":"${key} ${changed ? 'Your parcel is late' : text}"}}`

/** The body for an SQL expression that gives the key. */
export const bodySql = (key: string): string =>
  `'{"channel":"sms","to":"${to}","content":{"text":"' || ${key} || ' ${text}"}}'`

/** RFC 8785 orders the members: what the gateway takes the fingerprint of. */
export const canonicalSql = (key: string): string =>
  `'{"channel":"sms","content":{"text":"' || ${key} || ' ${text}"},"to":"${to}"}'`

/** Finds the key in what a program sent to the provider, whether JSON or a form. */
export const keyInBody = (body: string): string | undefined => /key-[0-9a-z]+-[0-9]+/.exec(body)?.[0]

/** Keys of one measurement begin with this; `run` is unique to it. */
export const keyPrefix = (run: string): string => `key-${run}-`
