/**
 * What a failed statement proves. Owns the one question that matters after an error: did it take effect?
 *
 * D1. `absent`: the statement did not take effect. `doubtful`: it may have; only reading back tells.
 * D2. Anything that is not plainly `absent` is `doubtful`.
 */
import pg from 'pg'
import { Prisma } from './generated/client.ts'

/** The data base cannot do it now; asked later, it may. What is not one of these is a bug. */
export abstract class StoreTrouble extends Error {}

/** The data base cannot be reached, or not used now; the statement may or may not have taken effect. */
export class StoreUnavailable extends StoreTrouble {
  readonly effect: 'absent' | 'doubtful'
  constructor(effect: 'absent' | 'doubtful', cause: unknown) {
    super('the data base cannot be used', { cause })
    this.name = 'StoreUnavailable'
    this.effect = effect
  }
}

/** Too many statements wait for a connection; nothing was sent to the data base. */
export class StoreOverloaded extends StoreTrouble {
  constructor() {
    super('too many statements wait for a connection')
    this.name = 'StoreOverloaded'
  }
}

/** A lock that someone else holds was waited for in vain; nothing took effect. */
export class StoreLocked extends StoreTrouble {
  constructor(cause: unknown) {
    super('someone else holds the row', { cause })
    this.name = 'StoreLocked'
  }
}

/** SQLSTATEs after which the statement is rolled back, and the same statement may work a moment later. */
const serialization = new Set(['40001', '40P01'])
const lockTimeout = '55P03'
/** SQLSTATE classes and codes that speak of the server, not of the statement. */
const serverTrouble = /^(08|28|3D|40|53|57|58|XX|25006|25P03|26000|42501|42P05)/
/** Of these, the ones that are certain to have undone the statement: refused at log-in, cancelled by time-out, disk full, read-only. */
const rolledBack = /^(28|3D|40001|40P01|57014|53|25006|26000|42501|42P05)/

export const isSerializationFailure = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && serialization.has(error.code ?? '')

/** The conversation is not at the version that a change is based on; nothing of the change took effect. */
export class ConversationMoved extends Error {
  constructor(cause: unknown) {
    super('the conversation moved', { cause })
    this.name = 'ConversationMoved'
  }
}

/** The constraint that a unique violation (23505) or a CHECK (23514) names, or null. */
export const violatedConstraint = (error: unknown): string | null =>
  error instanceof pg.DatabaseError && (error.code === '23505' || error.code === '23514')
    ? (error.constraint ?? '')
    : null

/** The CHECK that judges the version of a conversation, under the lock of its row. */
export const conversationCheck = 'conversation_has_not_moved'

/** Of the Prisma client's errors, those that speak of the data base and not of the request. */
const prismaOfServer = /^P(1\d{3}|20(10|24|28|34|37|39))$/

/** Wraps what means "the data base is not to be had now"; other errors (bugs) come back as they are. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof Prisma.PrismaClientKnownRequestError)
    return prismaOfServer.test(error.code) ? new StoreUnavailable('doubtful', error) : error
  if (
    error instanceof Prisma.PrismaClientUnknownRequestError ||
    error instanceof Prisma.PrismaClientInitializationError
  )
    return new StoreUnavailable('doubtful', error)
  if (error instanceof Error && error.name === 'DriverAdapterError') return new StoreUnavailable('doubtful', error)
  if (error instanceof pg.DatabaseError) {
    const code = error.code ?? ''
    if (code === lockTimeout) return new StoreLocked(error)
    return serverTrouble.test(code) ? new StoreUnavailable(rolledBack.test(code) ? 'absent' : 'doubtful', error) : error
  }
  if (!(error instanceof Error)) return error
  const { syscall } = error as NodeJS.ErrnoException
  const neverConnected =
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    error.message.startsWith('timeout exceeded when trying to connect')
  if (neverConnected) return new StoreUnavailable('absent', error)
  return isConnectionTrouble(error) ? new StoreUnavailable('doubtful', error) : error
}

function isConnectionTrouble(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException
  if (code !== undefined && /^(E[A-Z]+|ERR_[A-Z_]+)$/.test(code)) return true
  return /^(Connection terminated|Query read timeout|Client has encountered a connection error|timeout expired|The server does not support|Client was closed)/.test(
    error.message,
  )
}
