/** Merge patches of JSON values (RFC 7396). */
import type { Json, JsonObject } from './json.ts'

/** Null removes a key, an object is merged, any other value replaces. A target that is not an object counts as an empty one. */
export function mergePatch(target: Json, patch: JsonObject): JsonObject {
  const merged = new Map<string, Json>(isObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, isObject(value) ? mergePatch(merged.get(key) ?? null, value) : value)
  }
  return Object.fromEntries(merged)
}

/** Neither null nor a list. */
export function isObject(value: Json | undefined): value is JsonObject
export function isObject(value: unknown): value is Record<string, unknown>
export function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
