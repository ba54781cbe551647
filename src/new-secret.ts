/** The secret of an API key: 256 bits of chance, as hex. */
import { randomBytes } from 'node:crypto'

export const newSecret = (): string => randomBytes(32).toString('hex')
