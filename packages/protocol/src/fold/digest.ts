/** A short hash of a turn's messages. The worker and the server each compute it, and the server logs a difference. */
import type { Message } from '../entities/entities.ts'

export function digestOf(messages: readonly Message[]): string {
  const text = JSON.stringify(messages.map(({ index, status, content, metadata }) => [index, status, content, metadata]))
  // Two 32-bit FNV-1a hashes with different seeds.
  let a = 0x811c9dc5
  let b = 0x9747b28c
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i)
    a = Math.imul(a ^ unit, 0x01000193)
    b = Math.imul(b ^ unit, 0x01000193)
  }
  return (a >>> 0).toString(16).padStart(8, '0') + (b >>> 0).toString(16).padStart(8, '0')
}
