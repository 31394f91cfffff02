/** The beginning of a JSON value: enough to see what it is, in a few kilobytes at most. */
import type { Json } from '@rivulet/protocol'

const most = { text: 500, items: 5, keys: 20, depth: 3 }

export function previewOf(value: Json, depth = 0): Json {
  if (typeof value === 'string') return value.length > most.text ? `${cut(value)}…` : value
  if (typeof value !== 'object' || value === null) return value
  if (depth >= most.depth) return '…'
  // Narrower the deeper it is, so that the whole stays small.
  const narrower = 2 ** depth
  if (Array.isArray(value)) {
    const items = value.slice(0, Math.ceil(most.items / narrower)).map(item => previewOf(item, depth + 1))
    return items.length < value.length ? [...items, '…'] : items
  }
  const entries = Object.entries(value)
  const kept = entries.slice(0, Math.ceil(most.keys / narrower)).map(([key, item]) => [cut(key), previewOf(item, depth + 1)])
  return Object.fromEntries(kept.length < entries.length ? [...kept, ['…', entries.length - kept.length]] : kept)
}

/** Never between the halves of a character. */
function cut(text: string): string {
  return text.slice(0, most.text).replace(/[\ud800-\udbff]$/, '')
}
