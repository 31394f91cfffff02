/** What a tab and the shared worker send each other, and which requests of the client the worker can serve. */
import { type Cursor, origin, parseCursor } from '@rivulet/client'
import { feedName, type Head } from './shared-stream.ts'

/** Sent with a port, on which the worker responds. A message of the tab on that port ends the stream. */
export type ToWorker = { places: [name: string, place: Cursor | null][]; isTagged: boolean; authorization: string | null }

export type FromWorker = { kind: 'head'; head: Head } | { kind: 'frame'; frame: string } | { kind: 'end'; isBroken: boolean }

/** The worker sends it back. */
export const ping = 'ping'
export type Ping = typeof ping

/** Null for a request that needs a connection of its own: a stream that ends with its task, or has another format. */
export function sharedRequestOf(url: string, { headers, body }: RequestInit): ToWorker | null {
  const { pathname, searchParams } = new URL(url, location.origin)
  const authorization = new Headers(headers).get('authorization')
  const after = parseCursor(searchParams.get('after') ?? '')
  const [, task] = /^\/v1\/tasks\/([\da-f-]{36})\/events$/.exec(pathname) ?? []
  if (pathname === '/v1/feed') return { places: [[feedName, after]], isTagged: false, authorization }
  if (task && searchParams.has('follow'))
    return { places: [[task, searchParams.get('from') === 'start' ? origin : after]], isTagged: false, authorization }
  if (pathname !== '/v1/events' || typeof body !== 'string') return null
  const {
    tasks,
    follow = false,
    children = false,
  } = JSON.parse(body) as { tasks: Record<string, Cursor | null>; follow?: boolean; children?: boolean }
  return follow && !children ? { places: Object.entries(tasks), isTagged: true, authorization } : null
}
