/**
 * The OpenAPI document that a gateway serves, as a strict reader takes it: its operations, and what it says of a request
 * and of an answer. Formats that are not JSON Schema's own are read here anew, not by the code that they came from.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export type Schema = Readonly<Record<string, unknown>>

interface Content {
  readonly schema: Schema
  readonly examples?: Readonly<Record<string, unknown>>
}

interface Parameter {
  readonly in: string
  readonly name: string
  readonly schema: Schema
}

interface AnswerDoc {
  readonly headers?: Readonly<Record<string, { readonly schema: Schema }>>
  readonly content: Readonly<Record<string, Content>>
}

interface OperationDoc {
  readonly operationId: string
  readonly security?: unknown
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, AnswerDoc>>
}

export interface Operation extends OperationDoc {
  readonly method: string
  /** With its parameters in braces. */
  readonly path: string
}

export interface Document {
  readonly operations: readonly Operation[]
  /** A schema, its reference followed. */
  resolve(schema: Schema): Schema
  /** What the schema has against the value; null if nothing. */
  fault(schema: Schema, value: unknown): string | null
}

export function readDocument(text: string): Document {
  const document = JSON.parse(text) as {
    paths: Record<string, Record<string, OperationDoc>>
    components: { schemas: Record<string, Schema> }
  }
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictSchema: true, allErrors: false })
  addFormats.default(ajv)
  ajv.addFormat('https-url', /^https:\/\/[^@\s/]+(\/\S*)?$/)
  ajv.addKeyword({ keyword: 'discriminator', schemaType: 'object' })
  // Each component stands by itself, so that it is found from whatever refers to it.
  const standing = (schema: Schema): Schema =>
    JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"/components/')) as Schema
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(standing(schema), `/components/schemas/${name}`)
  const compiled = new Map<string, ValidateFunction>()
  const validator = (schema: Schema): ValidateFunction => {
    const asked = JSON.stringify(schema)
    const known = compiled.get(asked) ?? ajv.compile(standing(schema))
    compiled.set(asked, known)
    return known
  }
  return {
    operations: Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
    ),
    resolve: (schema) => {
      const { $ref: reference } = schema
      if (typeof reference !== 'string') return schema
      const parts = reference.split('/').slice(1)
      return parts.reduce<unknown>((at, part) => (at as Schema)[part], document) as Schema
    },
    fault: (schema, value) => {
      const validate = validator(schema)
      return validate(value) ? null : ajv.errorsText(validate.errors)
    },
  }
}
