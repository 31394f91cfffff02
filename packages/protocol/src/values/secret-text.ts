/** Removes the values of secrets from errors, because clients of other services repeat their key in them. */
import { type Json, toStorableText } from './json.ts'

/** By name. */
export type SecretValues = Readonly<Record<string, string>>

/** A copy with `[secret]` in place of each value, also where a text has the value as JSON or as a part of a URL. */
export function withoutSecrets<T extends Json>(value: T, secrets: SecretValues): T {
  // The longest first, because one may be a part of another.
  const values = Object.values(secrets)
    .flatMap(formsOf)
    .sort((a, b) => b.length - a.length)
  return values.length === 0 ? value : (cleaned(value) as T)

  function cleaned(part: Json): Json {
    if (typeof part === 'string') return values.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), part)
    if (Array.isArray(part)) return part.map(cleaned)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [cleaned(name), cleaned(inner)]))
  }
}

function formsOf(secret: string): string[] {
  return secret === '' ? [] : [...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(toStorableText(secret))])]
}
