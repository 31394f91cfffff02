/** A result without what differs from run to run: ids, times and clocks, of which only that they are there. */
export function anonymous(value: unknown): unknown {
  if (value instanceof Date) return 'a time'
  if (typeof value === 'string') return value.replace(/^[0-9a-f]{8}-[0-9a-f-]{27}$/, 'an id')
  if (Array.isArray(value)) return value.map(anonymous)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, name === 'clock' ? 'a clock' : anonymous(part)]))
}
