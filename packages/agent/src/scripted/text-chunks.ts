/** Cuts a text into chunks like those of a model: always between characters, and in the same places for the same seed. */

export type Chunking = 'characters' | 'words' | { min: number; max: number }

/** Sizes of `{ min, max }` are in characters (code points), both included. */
export function chunksOf(text: string, chunking: Chunking, random: () => number): string[] {
  if (chunking === 'characters') return Array.from(text)
  if (chunking === 'words') return wordsOf(text)
  const characters = Array.from(text)
  const chunks: string[] = []
  for (let at = 0; at < characters.length; ) {
    const size = Math.max(1, chunking.min + Math.floor(random() * (chunking.max - chunking.min + 1)))
    chunks.push(characters.slice(at, at + size).join(''))
    at += size
  }
  return chunks
}

/** Each word with the blanks before it; the last word also has the blanks after it. One pass, however many blanks there are. */
function wordsOf(text: string): string[] {
  const ends = Array.from(text.matchAll(/\S+/g), ({ index, 0: word }) => index + word.length)
  const cuts = [0, ...ends.slice(0, -1), text.length]
  return cuts.slice(1).flatMap((end, i) => text.slice(cuts[i], end) || [])
}

/** A seeded random generator of numbers from 0 to 1 (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
