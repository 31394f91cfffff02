/** One page of a list: `nextCursor` is the cursor of the next page, null on the last. */
import type { Entity } from '@rivulet/protocol'
import { readEntities, readJson } from './http.ts'

export type Page<T, C = string> = { data: T[]; nextCursor: C | null }

/** `after` is an index; at most 100 a page. */
export type MessageQuery = { after?: number; limit?: number; turn?: number }

export function readPage<T, C extends string | number>(response: Response, entity: Entity): Promise<Page<T, C>> {
  return readJson(response, ({ data, nextCursor }) => {
    return { data: readEntities<T>(data, entity), nextCursor: (nextCursor ?? null) as C | null }
  })
}
