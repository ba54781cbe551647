/** Pieces of schemas that both sides of the contract use. */
import { statuses } from '../core/message.ts'
import { Type, type Static, type TSchema, type TSchemaOptions } from 'typebox'

/** One readable line: it may reach a header of a provider or of an e-mail, so no control characters. */
export const line = (maxLength: number, more: TSchemaOptions = {}) =>
  Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$', ...more })
export const text = (description: string) => Type.String({ minLength: 1, description })
export const time = (description: string) => Type.String({ format: 'date-time', description })
export const address = (more: TSchemaOptions = {}) => Type.String({ format: 'email', maxLength: 320, ...more })
export const strict = { additionalProperties: false }
export const nullable = <T extends TSchema>(schema: T, more: TSchemaOptions = {}) =>
  Type.Union([schema, Type.Null()], more)
/** Members of any name; `Type.Record` would leave those with a line break in their name unchecked. */
export const map = <T extends TSchema>(values: T, more: TSchemaOptions = {}) =>
  Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: values, ...more })
export const yearS = 31_536_000

export const id = (prefix: string, description: string) =>
  Type.String({ pattern: `^${prefix}_[0-9a-f]{32}$`, description })
export const messageId = id('msg', 'Id of a message.')

export const messageReference = Type.Object(
  {
    id: messageId,
    status: Type.Enum([...statuses]),
    createdAt: Type.Optional(time('When the key was claimed.')),
  },
  strict,
)
