/** What is behind a branch of JSON, in a few words. */
import type { Json } from '@rivulet/client'

const maxLength = 60

export function summaryOf(value: Json[] | { [key: string]: Json }, isOpen: boolean): string {
  const total = Object.keys(value).length
  const many = `${total} ${Array.isArray(value) ? (total === 1 ? 'item' : 'items') : total === 1 ? 'key' : 'keys'}`
  if (isOpen) return many
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const parts: string[] = []
  let length = 0
  for (const [key, child] of Object.entries(value)) {
    const said = Array.isArray(value) ? leafOf(child) : `${key}: ${leafOf(child)}`
    length += said.length
    if (length > maxLength) return `${open}${[...parts, '…'].join(', ')}${close} ${many}`
    parts.push(said)
  }
  return `${open}${parts.join(', ')}${close}`
}

function leafOf(value: Json): string {
  if (Array.isArray(value)) return '[…]'
  if (typeof value === 'object' && value !== null) return '{…}'
  return typeof value === 'string' && value.length > 24 ? JSON.stringify(`${value.slice(0, 24)}…`) : JSON.stringify(value)
}
