/** A task's event stream as the server sends it, byte by byte, over one connection. */
import type { Cursor } from '@rivulet/client'
import type { Connection } from '../connection.ts'

export type RawRequest = { task: string; after?: Cursor | undefined; follow: boolean; signal: AbortSignal }

export async function readRawEvents(
  { url, key }: Connection,
  { task, after, follow, signal }: RawRequest,
  write: (text: string) => Promise<void>,
): Promise<void> {
  const query = new URLSearchParams({ ...(after === undefined ? { from: 'start' } : { after }), ...(follow && { follow: 'true' }) })
  const headers = { accept: 'text/event-stream', ...(key !== undefined && { authorization: `Bearer ${key}` }) }
  const response = await fetch(`${url}/v1/tasks/${task}/events?${query}`, { headers, signal })
  if (!response.ok) throw new Error(`The server returned ${response.status}`)
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) await write(decoder.decode(bytes, { stream: true }))
}
