/** Describes any error in one sentence for people. */
import { RivuletError } from '@rivulet/client'
import { cleanLine } from './clean-text.ts'

export function sentenceOf(error: unknown, url: string): string {
  if (error instanceof RivuletError) return cleanLine(sentenceOfRejection(error, url))
  return error instanceof Error ? error.message : String(error)
}

function sentenceOfRejection(error: RivuletError, url: string): string {
  const details = error.details?.map(({ path, reason }) => (path ? `${path}: ${reason}` : reason)) ?? []
  // The message of a newer API ends with the first.
  const isNamed = details[0] !== undefined && error.message.endsWith(details[0])
  switch (error.code) {
    case 'unreachable':
      if (isRefused(error)) return `No Rivulet at ${url}: start one with npm start`
      return error.message.includes(url) ? error.message : `${error.message} (${url})`
    case 'unauthorized':
      return `Rivulet at ${url} requires a key: set --key or RIVULET_KEY`
    default:
      return isNamed ? [error.message, ...details.slice(1)].join('; ') : [error.message, details.join('; ')].filter(Boolean).join(': ')
  }
}

/** fetch wraps what happened, and a name with several addresses wraps it once more. */
function isRefused(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 4) return false
  if ('code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOTFOUND')) return true
  return isRefused(error.cause, depth + 1)
}
