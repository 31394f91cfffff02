/**
 * The ids of OpenAI's Responses, and their sequence numbers.
 *
 * A response is one segment of a turn: `<task>.<turn>.<segment>`, as `segment.ts` numbers them. A sequence number is the cursor of an event and the
 * place of a chunk in it, as one integer, so that any API can resume after it. Numbers after a gap have the highest bit: the chunks before them
 * were made of a snapshot, so they cannot be made again from the log.
 */
import { type Cursor, epochOf, formatCursor, seqOf, type TaskId, taskIdSchema } from '@rivulet/protocol'

export type ResponseId = { task: TaskId; turnNumber: number; segment: number }

export function formatResponseId({ task, turnNumber, segment }: ResponseId): string {
  return `${task}.${turnNumber}.${segment}`
}

export function parseResponseId(text: string): ResponseId | null {
  const [, task = '', turn = '', segment = ''] = /^([^.]{36})\.([1-9]\d{0,8})\.([1-9]\d{0,5})$/.exec(text) ?? []
  const { data } = taskIdSchema.safeParse(task)
  return data === undefined ? null : { task: data, turnNumber: Number(turn), segment: Number(segment) }
}

/** The 53 bits of a number: one for a gap, 22 for the epoch, 21 for the entry, 9 for the chunk. A turn has at most 16 MiB, which is fewer entries than that. */
const chunkRange = 2 ** 9
const entryRange = 2 ** 21
const epochRange = 2 ** 22
const gap = 2 ** 52

/** The highest number that a client may resume after, so that there is room for what follows. */
export const maxSequenceNumber = 2 ** 53 - 2 ** 20

type SequencePlace = { cursor: Cursor; chunk: number; isAfterGap: boolean }

/** Null where the place has no exact number. */
export function sequenceNumberOf({ cursor, chunk, isAfterGap }: SequencePlace): number | null {
  const [epoch, entry] = [epochOf(cursor), seqOf(cursor)]
  if (!isAfterGap && (chunk >= chunkRange || entry >= entryRange || epoch >= epochRange)) return null
  const place = ((epoch % epochRange) * entryRange + (entry % entryRange)) * chunkRange + chunk
  return place + (isAfterGap ? gap : 0)
}

export function placeOfNumber(number: number): SequencePlace {
  const isAfterGap = number >= gap
  const place = isAfterGap ? number - gap : number
  const entry = Math.floor(place / chunkRange)
  return {
    cursor: formatCursor(Math.floor(entry / entryRange), entry % entryRange),
    chunk: place % chunkRange,
    isAfterGap,
  }
}
