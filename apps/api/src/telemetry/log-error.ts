/**
 * Converts an error to log fields: its type, code, message, causes and stack. It omits the parameters of a query and Postgres' details, because
 * they may contain text of people.
 */
import { DrizzleQueryError } from 'drizzle-orm'

export function describeError(error: unknown): object {
  const chain = chainOf(error)
  const [first] = chain
  if (!first) return { type: typeof error, message: 'A value that is not an error was thrown' }
  const message = chain.map(messageOf).filter(Boolean).join(': ')
  const code = chain.flatMap(each => ('code' in each ? [String(each.code)] : [])).at(-1)
  const frames = chain.map(({ stack = '' }) => stack.split('\n').filter(line => /^ {4}at /.test(line)))
  return { type: nameOf(first), message, ...(code && { code }), stack: [`${nameOf(first)}: ${message}`, ...frames.flat()].join('\n') }
}

/** An error and what it was caused by. */
function chainOf(error: unknown, found: Error[] = []): Error[] {
  return error instanceof Error && !found.includes(error) ? chainOf(error.cause, [...found, error]) : found
}

function messageOf(error: Error): string {
  if (error instanceof DrizzleQueryError) return 'A query failed'
  // Class 22 is about a value, and quotes it.
  return 'code' in error && /^22...$/.test(String(error.code)) ? 'Postgres cannot store a value' : error.message
}

function nameOf(error: Error): string {
  return error.name
}
