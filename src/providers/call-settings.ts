/** The settings that every HTTP adapter has, once: names, bounds, sentences. */
import { Type } from 'typebox'

/** @param defaults in milliseconds */
export const callSettings = (defaults: { connectTimeoutMs: number; answerTimeoutMs: number }) => ({
  connectTimeoutMs: Type.Integer({
    minimum: 100,
    maximum: 60_000,
    default: defaults.connectTimeoutMs,
    description: 'How long connecting may take, in milliseconds; after it the message was not sent.',
  }),
  answerTimeoutMs: Type.Integer({
    minimum: 100,
    maximum: 120_000,
    default: defaults.answerTimeoutMs,
    description: 'How long the answer may take, in milliseconds; after it the outcome is unknown.',
  }),
  concurrency: Type.Integer({
    minimum: 1,
    maximum: 1024,
    default: 64,
    description: 'How many calls are open at one time.',
  }),
})

/** Where an API is. @param follows the path that the adapter asks for */
export const apiUrl = (api: { default: string; follows: string }) =>
  Type.String({
    pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
    default: api.default,
    description: `Where the API is; a path in it is kept in front of ${api.follows}.`,
  })
