/** Streams of bytes: regrouped, counted, hashed. Each holds at most one piece in memory. */
import { createHash } from 'node:crypto'
import { RivuletError } from '@rivulet/protocol'

/** The same bytes in pieces of exactly this size, the last one shorter. A piece is valid until the next one is asked for: they share their memory. */
export async function* inPiecesOf(size: number, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const piece = Buffer.allocUnsafe(size)
  let filled = 0
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.copy(piece, filled, at)
      at += taken
      filled += taken
      if (filled < size) continue
      yield piece
      filled = 0
    }
  }
  if (filled > 0) yield piece.subarray(0, filled)
}

export type Measured = { size: number; sha256: string }

/** Passes bytes on, and tells afterwards what has passed. */
export function measure(bytes: AsyncIterable<Buffer>, onBytes: (size: number) => void = () => {}) {
  const hash = createHash('sha256')
  let size = 0
  return { passing: pass(), measured: (): Measured => ({ size, sha256: hash.copy().digest('hex') }) }

  async function* pass(): AsyncGenerator<Buffer> {
    for await (const chunk of bytes) {
      size += chunk.length
      onBytes(size)
      hash.update(chunk)
      yield chunk
    }
  }
}

/** The bytes of a whole file. The last piece is held back until the checksum is right, so no reader takes damaged bytes for a whole file. */
export async function* verified(bytes: AsyncIterable<Buffer>, sha256: string): AsyncGenerator<Buffer> {
  const { passing, measured } = measure(bytes)
  let last: Buffer | null = null
  for await (const piece of passing) {
    if (last) yield last
    last = piece
  }
  if (measured().sha256 !== sha256) throw new RivuletError('internal', 'The stored bytes of a file do not have its checksum')
  if (last) yield last
}
