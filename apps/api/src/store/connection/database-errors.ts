/**
 * Classifies an error of the database driver: Postgres rejected the statement, Postgres is unavailable, or the connection broke during the
 * statement.
 */
import { DatabaseError } from 'pg'

/** The SQLSTATE of a refusal by Postgres, wherever drizzle has wrapped it. Errors of sockets have codes too, and some look like one: `EPIPE`. */
export function sqlStateOf(error: unknown): string | undefined {
  for (const cause of causesOf(error)) if (cause instanceof DatabaseError) return cause.code
  return undefined
}

/** Whether Postgres could not be asked, as opposed to having refused. */
export function isDatabaseAway(error: unknown): boolean {
  const state = sqlStateOf(error)
  // 08: connection, 40: gave way to another, 53: out of resources, 57: shut down or canceled, 25P03: idle too long, 55P03: lock not to be had.
  if (state) return /^(08|40|53|57)/.test(state) || state === '25P03' || state === '55P03'
  return causesOf(error).some(cause => networkCodes.has(codeOf(cause)) || (cause.name === 'Error' && driverMessage.test(cause.message)))
}

/**
 * Whether the connection broke under the question, so that it can be asked again at once on another. A server that refuses connections, and a
 * question that took too long, would only be asked in vain once more.
 */
export function isConnectionBroken(error: unknown): boolean {
  const state = sqlStateOf(error)
  if (state) return /^(08|57P)/.test(state)
  return causesOf(error).some(cause => brokenCodes.has(codeOf(cause)) || (cause.name === 'Error' && brokenMessage.test(cause.message)))
}

/** Whether a statement waited for another transaction (40, 55P03), or took too long (57014). */
export function isHeldUp(error: unknown): boolean {
  return /^(40|55P03|57014)/.test(sqlStateOf(error) ?? '')
}

/** Whether a statement waited too long for a row that another transaction holds. */
export function isRowHeld(error: unknown): boolean {
  return sqlStateOf(error) === '55P03'
}

/** Whether every connection of the pool was in use for too long. */
export function isPoolBusy(error: unknown): boolean {
  return causesOf(error).some(({ message }) => message === 'timeout exceeded when trying to connect')
}

/** Asks once more where the connection broke. Only for what may be carried out twice: the first question may have been, and its answer lost. */
export async function askTwice<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!isConnectionBroken(error)) throw error
    return ask()
  }
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = []
  for (let cause = error; cause instanceof Error; cause = cause.cause) causes.push(cause)
  return causes
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

const brokenCodes = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED'])
const networkCodes = new Set([
  ...brokenCodes,
  ...['ECONNREFUSED', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'],
])
const brokenMessage = /terminated(?! due to connection timeout)|not queryable|Connection (ended|closed)/i
const driverMessage = /timeout|terminated|not queryable|Connection (ended|closed)/i
