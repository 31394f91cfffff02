/** Reads an event stream in any format as it comes, over one connection. */
import { createParser } from 'eventsource-parser'
import { until } from '../until.ts'

export type FormatFrame = { id: string | null; event: string | null; data: string }

export type FormatReader = {
  frames: FormatFrame[]
  /** How the connection ended. */
  closed: Promise<'ended' | 'broken'>
  status(): number
  headers(): Record<string, string>
  until(condition: () => boolean): Promise<unknown>
}

export type ReadOptions = { body?: object; after?: string; signal?: AbortSignal }

export function readFormat(url: string, { body, after, signal }: ReadOptions = {}): FormatReader {
  const frames: FormatFrame[] = []
  let response: Response | null = null
  const parser = createParser({ onEvent: ({ id = null, event = null, data }) => frames.push({ id, event, data }) })
  return {
    ...{ frames, closed: run() },
    status: () => response?.status ?? 0,
    headers: () => Object.fromEntries(response?.headers ?? []),
    until: condition => until('it is received', condition),
  }

  async function run(): Promise<'ended' | 'broken'> {
    response = await fetch(url, {
      ...(signal && { signal }),
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { ...(body && { 'content-type': 'application/json' }), ...(after && { 'last-event-id': after }) },
    })
    const decoder = new TextDecoder()
    try {
      for await (const bytes of response.body ?? []) parser.feed(decoder.decode(bytes, { stream: true }))
      return 'ended'
    } catch {
      return 'broken'
    }
  }
}
