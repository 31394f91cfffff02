/** One page of a list: `nextCursor` is the cursor of the next page, null on the last. */
import { unreachable } from './answer.ts'
import { readJson } from './http.ts'

export type Page<T, C = string> = { data: T[]; nextCursor: C | null }

/** `after` is an index; at most 100 a page. */
export type MessageQuery = { after?: number; limit?: number; turn?: number }

export function readPage<T, C extends string | number>(response: Response, item: { parse(value: unknown): T }): Promise<Page<T, C>> {
  return readJson(response, ({ data, nextCursor }) => {
    if (!Array.isArray(data)) throw unreachable('A page has no data')
    return { data: data.map(value => item.parse(value)), nextCursor: (nextCursor ?? null) as C | null }
  })
}
