/**
 * How the tools reach the gateway: by its own routes, as any other caller. One function, so that the tools are the same
 * in the gateway's process (http-endpoint.ts) and beside it (http-client.ts).
 *
 * G1. A call is made once. Whoever wants it repeated asks again with the same arguments: the key makes that safe.
 * G2. What came back is handed on as it is; that nothing came back is `NoAnswer`, and says nothing of what was done.
 */
export interface CallAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>
  /** Undefined if the body was no JSON: then it was not the gateway who answered. */
  readonly json: unknown
}

/** @param body sent as JSON. @throws NoAnswer */
export type Call = (
  method: 'GET' | 'POST',
  path: string,
  headers?: Readonly<Record<string, string>>,
  body?: unknown,
) => Promise<CallAnswer>

/** The gateway was not reached, or its answer was lost: the request may have been carried out. */
export class NoAnswer extends Error {
  constructor(detail: string, cause: unknown) {
    super(detail, { cause })
    this.name = 'NoAnswer'
  }
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined // see `json`
  }
}
