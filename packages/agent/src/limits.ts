/** What bounds a response, whatever its server sends. What it says in all is bounded by the protocol: 16 MiB. */
const KiB = 1024

export type ModelLimits = Readonly<Record<keyof typeof defaultModelLimits, number>>

export const defaultModelLimits = {
  /** Characters of one server-sent event, complete or not. */
  eventChars: 4 * KiB * KiB,
  /** Content blocks of one response. */
  blocks: 1024,
  /** Tool calls of one response. Their indexes are names, not places: a high one costs nothing. */
  calls: 128,
  /** Characters of all tool arguments and names of one response. */
  argumentChars: 4 * KiB * KiB,
  /** Characters of what a response holds back, or keeps beside its text: signatures, hidden reasoning, citations, blocks of a kind that we do not know. */
  asideChars: 4 * KiB * KiB,
  /** What is read of an answer that is not a stream, to say what went wrong. */
  errorBytes: 64 * KiB,
} as const satisfies Record<string, number>
