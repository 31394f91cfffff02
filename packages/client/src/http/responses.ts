/** Reads the responses of the API. A body of another shape is an error that may pass, because a proxy in between may have sent it. */
import { unreachable } from './rejection.ts'
import { type Entity, fieldsOf, hasShape, isEntity } from './shapes.ts'

/** One page of a list: `nextCursor` is the cursor of the next page, null on the last. */
export type Page<T, C = string> = { data: T[]; nextCursor: C | null }

export type Read<T> = (response: Response) => Promise<T>

type Body = Record<string, unknown>

export const readNothing: Read<void> = async () => {}

export function readJson<T>(parse: (body: Body) => T): Read<T> {
  return async response => {
    try {
      return parse((await response.json()) as Body)
    } catch (error) {
      throw unreachable('Malformed or incomplete response', error)
    }
  }
}

/** A body with these fields, written as in `generated/shapes.ts`; of a single one its value. */
export function readFields<T>(text: string): Read<T> {
  const fields = fieldsOf(text)
  return readJson(body => {
    if (!hasShape(body, fields)) throw new Error(`The response lacks some of ${text}`)
    return (fields.length === 1 ? body[fields[0]?.name ?? ''] : body) as T
  })
}

/** Throws for a value of another shape, which `readJson` reports. */
export function toEntity<T>(value: unknown, entity: Entity): T {
  if (!isEntity(value, entity)) throw new Error(`The response has no valid ${entity}`)
  return value as T
}
