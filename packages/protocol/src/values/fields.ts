/** Fast checks of fields, for the most frequent events and updates, where a schema would be too slow. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

export function countFields(value: object): number {
  let count = 0
  for (const _ in value) count += 1
  return count
}
