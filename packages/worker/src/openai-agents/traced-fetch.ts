/** A `fetch` for the client of a provider: its requests carry the `traceparent` of the turn, or of the model's call, that they belong to. */
import { currentTurn } from './current-turn.ts'

export function tracedFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const current = currentTurn()
  if (!current) return fetch(input, init)
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))
  headers.set('traceparent', current.span.traceparent)
  return fetch(input, { ...init, headers })
}
