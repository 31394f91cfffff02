/** The limits of one response, whatever its server sends. The protocol limits the total output of a turn (16 MiB). */
const KiB = 1024

export type ModelLimits = Readonly<Record<keyof typeof defaultModelLimits, number>>

export const defaultModelLimits = {
  /** Characters of one server-sent event, complete or not. */
  eventChars: 4 * KiB * KiB,
  /** Content blocks of one response. */
  blocks: 1024,
  /** Tool calls of one response. Their indexes are only labels, so a high index costs no memory. */
  calls: 128,
  /** Characters of all tool arguments and names of one response. */
  argumentChars: 4 * KiB * KiB,
  /** Characters that a response keeps besides its text: signatures, encrypted reasoning, citations, blocks of unknown types. */
  asideChars: 4 * KiB * KiB,
  /** Bytes read from a response that is not a stream, for the error message. */
  errorBytes: 64 * KiB,
} as const satisfies Record<string, number>
