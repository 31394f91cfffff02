/**
 * What a client checks of a JSON value from the API before it relies on it: each field has the JSON type that the contract gives it.
 *
 * The server validates with the schemas. A client checks only this, because the validation library would be most of a browser's bundle.
 */
import { type Event, isObject, type WireEvent } from '@rivulet/protocol'
import { contents, deltas, entities, events } from '../generated/shapes.ts'

export type Entity = keyof typeof entities

type Field = { name: string; kind: string; isOptional: boolean }
type Shapes = Readonly<Record<string, readonly Field[]>>

const shapes = {
  content: shapesOf(contents),
  delta: shapesOf(deltas),
  entity: shapesOf(entities),
  event: shapesOf(events),
}

/** The event; null for a type that this version does not know, which readers pass over; `malformed` for a known type with a wrong field. */
export function readEvent(value: unknown): Event | WireEvent | null | 'malformed' {
  if (!isObject(value) || typeof value.type !== 'string') return 'malformed'
  if (!Object.hasOwn(shapes.event, value.type)) return null
  return isOfType(value, shapes.event) ? (value as Event | WireEvent) : 'malformed'
}

export function isEntity(value: unknown, entity: Entity): boolean {
  return hasShape(value, shapes.entity[entity])
}

function shapesOf(tables: Readonly<Record<string, string>>): Shapes {
  return Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, fieldsOf(table)]))
}

/** Fields as `name`, which is a string, or `name:kind`; `?` marks one that may be absent. */
export function fieldsOf(text: string): Field[] {
  return Array.from(text.matchAll(/(\w+)(\??)(?::(\S+))?/g), ([, name = '', mark, kind = 'string']) => ({
    name,
    kind,
    isOptional: mark === '?',
  }))
}

export function hasShape(value: unknown, shape: readonly Field[] | undefined): boolean {
  if (!isObject(value) || !shape) return false
  return shape.every(({ name, kind, isOptional }) => (value[name] === undefined ? isOptional : isOfKind(value[name], kind)))
}

/** A JSON type, an entity, a union by `type`, or a list (`…[]`). `json` is any value. */
function isOfKind(value: unknown, kind: string): boolean {
  if (kind.endsWith('[]')) return Array.isArray(value) && value.every(item => isOfKind(item, kind.slice(0, -2)))
  if (kind === 'json') return true
  if (kind === 'object') return isObject(value)
  if (kind === 'content' || kind === 'delta') return isOfType(value, shapes[kind])
  return kind in entities ? hasShape(value, shapes.entity[kind]) : typeof value === kind
}

function isOfType(value: unknown, table: Shapes): boolean {
  return isObject(value) && typeof value.type === 'string' && Object.hasOwn(table, value.type) && hasShape(value, table[value.type])
}
