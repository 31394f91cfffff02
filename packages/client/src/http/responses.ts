/** Reads the responses of the API. A body of another shape is an error that may pass, because a proxy in between may have sent it. */
import { unreachable } from './rejection.ts'
import { type Entity, isEntity } from './shapes.ts'

/** One page of a list: `nextCursor` is the cursor of the next page, null on the last. */
export type Page<T, C = string> = { data: T[]; nextCursor: C | null }

/** `after` is an index; at most 100 a page. */
export type MessageQuery = { after?: number; limit?: number; turn?: number }

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

/** A secret that is returned once. */
export function toSecret(secret: unknown): string {
  if (typeof secret !== 'string') throw new Error('The response has no secret')
  return secret
}

/** A body that is an entity. */
export function readBody<T>(entity: Entity): Read<T> {
  return readJson(body => toEntity<T>(body, entity))
}

/** A body with an entity in a field, whose name is that of the entity by default. */
export function readField<T>(entity: Entity, field: string = entity): Read<T> {
  return readJson(body => toEntity<T>(body[field], entity))
}

export function readList<T>(entity: Entity): Read<T[]> {
  return readJson(({ data }) => toEntities<T>(data, entity))
}

export function readPage<T, C extends string | number = string>(entity: Entity): Read<Page<T, C>> {
  return readJson(({ data, nextCursor }) => ({ data: toEntities<T>(data, entity), nextCursor: (nextCursor ?? null) as C | null }))
}

/** Throws for a value of another shape, which `readJson` reports. */
export function toEntity<T>(value: unknown, entity: Entity): T {
  if (!isEntity(value, entity)) throw new Error(`The response has no valid ${entity}`)
  return value as T
}

export function toEntities<T>(values: unknown, entity: Entity): T[] {
  if (!Array.isArray(values)) throw new Error(`The response has no list of ${entity}s`)
  return values.map(value => toEntity<T>(value, entity))
}
