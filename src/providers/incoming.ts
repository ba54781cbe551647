/**
 * What adapters need to read a webhook: pure, and constant in time where a secret is compared. It knows no provider.
 *
 * I1. Two texts are compared by their digests: how long it takes tells nothing of either, nor of their lengths.
 * I2. A signature is judged before its time, and both before the body is read as anything but bytes.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingWebhook, InboundReply, ParsedWebhook } from './provider.ts'

/** Genuine, and of no use here: it is acknowledged, and nothing is kept. */
export const noNews: ParsedWebhook = { events: [], replies: [] }

/** A reply, if somebody said something in it: a picture or a sticker has no text, and is no news. */
export const saidIn = (reply: InboundReply): ParsedWebhook =>
  reply.text.trim() === '' ? noNews : { events: [], replies: [reply] }

/** How far the time in a signature may be from ours: what Standard Webhooks and Slack recommend. */
export const toleranceMs = 300_000

const digestOf = (value: string | Buffer): Buffer => createHash('sha256').update(value).digest()

/** I1. */
export const isSame = (given: string, right: string): boolean => timingSafeEqual(digestOf(given), digestOf(right))

export const hmacOf = (
  algorithm: 'sha1' | 'sha256',
  key: string | Buffer,
  content: string | Buffer,
  encoding: 'hex' | 'base64',
): string => createHmac(algorithm, key).update(content).digest(encoding)

/** A header that came once; empty if it did not. */
export function headerOf({ headers }: IncomingWebhook, name: string): string {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}

/** Null if it is no time. */
export function dateOfMs(ms: number): Date | null {
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? null : at
}

/** Seconds since 1970, as signatures carry them; null if it is not that. */
export const timeOf = (seconds: string): Date | null =>
  /^\d{1,12}$/.test(seconds) ? new Date(Number(seconds) * 1000) : null

export const isRecent = (at: Date, now: Date): boolean => Math.abs(now.getTime() - at.getTime()) <= toleranceMs

/** The body as JSON; undefined if it is not. */
export function jsonOf(rawBody: Buffer): unknown {
  try {
    return JSON.parse(rawBody.toString('utf8')) as unknown
  } catch {
    return undefined // the caller says that it is unreadable
  }
}

/** RFC 3339, as providers write it; null if it is not a time. */
export function dateOf(value: unknown): Date | null {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? dateOfMs(Date.parse(value)) : null
}

/** The id of an event whose provider gives none: of the fields that make it that event. */
export const eventIdOf = (...fields: readonly (string | null)[]): string =>
  createHash('sha256').update(JSON.stringify(fields)).digest('base64url')
