/**
 * JSON values, and the checks that make them safe to stream and to store.
 *
 * Values of requests are checked and rejected with a reason. Values of agents are made storable: NUL and lone surrogates become U+FFFD. So text
 * that was streamed can always be committed to Postgres. Walks are iterative or bounded, so depth cannot overflow the stack.
 */
import { RivuletError } from '../errors.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** Nesting of the output of agents: a constant, because all readers must agree on it. The default of requests. */
export const maxOutputDepth = 64

export type JsonFault = {
  /** `validation_failed`: a number too large for a double, which would be stored as null. */
  code: 'json_too_deep' | 'json_too_complex' | 'invalid_characters' | 'forbidden_key' | 'validation_failed'
  path: string
}

/** The first fault found in a parsed JSON value, with its JSON pointer, or null. */
export function findJsonFault(root: unknown, limits: { jsonDepth: number; jsonItems: number }): JsonFault | null {
  type Visit = { value: unknown; depth: number; path: string }
  const visits: Visit[] = [{ value: root, depth: 0, path: '' }]
  let items = 0
  for (let visit = visits.pop(); visit; visit = visits.pop()) {
    const { value, depth, path } = visit
    if (typeof value === 'string' && !isStorableText(value)) return { code: 'invalid_characters', path }
    if (typeof value === 'number' && !Number.isFinite(value)) return { code: 'validation_failed', path }
    if (typeof value !== 'object' || value === null) continue
    if (depth >= limits.jsonDepth) return { code: 'json_too_deep', path }
    for (const [key, child] of Object.entries(value)) {
      items += 1
      if (items > limits.jsonItems) return { code: 'json_too_complex', path: '' }
      if (key === '__proto__' || (key === 'constructor' && isPrototypeHolder(child))) return { code: 'forbidden_key', path }
      if (!isStorableText(key)) return { code: 'invalid_characters', path }
      visits.push({ value: child, depth: depth + 1, path: `${path}${pointerTo(key)}` })
    }
  }
  return null
}

/** The value as plain JSON that can be stored. Throws when it is not JSON or is nested too deep. */
export function toStorableJson(given: unknown, maxDepth: number): Json {
  const value = plainOf(given)
  if (typeof value === 'string') return toStorableText(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (value === null || typeof value === 'boolean') return value
  if (typeof value !== 'object') throw new RivuletError('bad_event', `A value of type ${typeof value} is not JSON`)
  if (maxDepth <= 0) throw new RivuletError('bad_event', 'JSON is nested too deep')
  if (Array.isArray(value)) return Array.from(value, item => toStorableJson(item === undefined ? null : item, maxDepth - 1))
  const entries = Object.entries(value).filter(([, child]) => child !== undefined)
  // Not by assignment, because assigning the key __proto__ would set the prototype.
  return Object.fromEntries(entries.map(([key, child]) => [toStorableText(key), toStorableJson(child, maxDepth - 1)]))
}

/** One step of a JSON pointer. */
export function pointerTo(key: string): string {
  return `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The same length in UTF-16 units, with U+FFFD for NUL and for halves of surrogate pairs. */
export function toStorableText(text: string): string {
  const wellFormed = text.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\uFFFD') : wellFormed
}

/** The value that JSON.stringify would use: the result of one call of `toJSON`, where there is one. */
function plainOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value
}

function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

function isPrototypeHolder(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype')
}
