/**
 * The segments of a turn: a response of OpenAI ends where its turn asks for something, and what follows the answer is another response.
 *
 * Segment n begins after the first n - 1 questions of its turn, and ends with the questions that were asked together after these. Where it begins and
 * ends is a function of the waits alone, so a stream, a response that is read later, and the rows have the same segments.
 */
import { isAnsweredByRequest, type Wait } from '@rivulet/protocol'

export type Question = Wait & { index: number }

/** Where a segment begins: `from` is the index of its first message, `previous` the number of the segment before it in the same turn. */
export type Segment = { number: number; from: number; previous: number | null; since: string | null }

/** The messages of a segment, by their indexes. `to` is null while the segment has no end. */
export type Range = { from: number; to: number | null }

/** In the order in which they were asked. A question that has no index, from a worker of an older version, does not end a segment. */
export function questionsOf(waits: readonly Wait[] = []): Question[] {
  return waits
    .flatMap(wait => (wait.index !== undefined && isAnsweredByRequest(wait.kind) ? [{ ...wait, index: wait.index }] : []))
    .sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt) || (a.id < b.id ? -1 : 1))
}

export const firstSegment: Segment = { number: 1, from: 0, previous: null, since: null }

/** Null where the turn has no such segment. */
export function segmentOf(waits: readonly Wait[] | undefined, number: number): Segment | null {
  if (number === 1) return firstSegment
  const questions = questionsOf(waits)
  const before = questions.slice(0, number - 1)
  const last = before.at(-1)
  if (before.length < number - 1 || !last || questions[number - 1]?.createdAt === last.createdAt) return null
  const previous = before.findIndex(({ createdAt }) => createdAt === last.createdAt) + 1
  return { number, from: endOf(before), previous, since: last.answer?.at ?? last.createdAt }
}

/** The number of the segment that follows the answer to a question. */
export function segmentAfter(waits: readonly Wait[] | undefined, { createdAt }: Pick<Wait, 'createdAt'>): number {
  return questionsOf(waits).findLastIndex(question => question.createdAt === createdAt) + 2
}

/** The questions that end a segment; empty while it goes on. */
export function closingQuestions(waits: readonly Wait[] | undefined, number: number): Question[] {
  if (!waits) return []
  const [first, ...later] = questionsOf(waits).slice(number - 1)
  return first ? [first, ...later.filter(({ createdAt }) => createdAt === first.createdAt)] : []
}

/** Whether the questions before a segment are closed, so that it goes on. */
export function hasBegun(waits: readonly Wait[] | undefined, number: number): boolean {
  if (number === 1) return true
  const before = questionsOf(waits).slice(0, number - 1)
  return before.length === number - 1 && before.every(({ status }) => status !== 'open')
}

/** The index behind the last message of the segment that these questions end. */
export function endOf(questions: readonly Question[]): number {
  return Math.max(0, ...questions.map(({ index }) => index))
}
