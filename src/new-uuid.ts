/**
 * Ids: UUIDv7 (RFC 9562, 5.7), in the order in which this process makes them (6.2, method 1: a counter in rand_a). Several
 * are made for each send, so their random bits come from node's own cache of them; the package draws anew for each.
 */
import { randomInt, randomUUID } from 'node:crypto'

const counterBits = 12

/** @param nowMs in milliseconds since 1970 */
export function uuidMaker(nowMs: () => number): () => string {
  let lastMs = 0
  let counter = 0
  return () => {
    const now = nowMs()
    if (now > lastMs) {
      lastMs = now
      counter = randomInt(1 << (counterBits - 1)) // room to count in
    } else if (++counter >> counterBits > 0) {
      lastMs += 1 // more in a millisecond than there is room for: the next one is begun early
      counter = 0
    }
    const time = lastMs.toString(16).padStart(12, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${randomUUID().slice(19)}`
  }
}

export const newUuid = uuidMaker(Date.now)
