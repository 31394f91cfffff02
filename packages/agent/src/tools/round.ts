/** One round of a call that takes several: what a tool throws at its end, and what it gets in the next one. */
import type { Json, JsonObject } from '@rivulet/protocol'
import type { ToolAnswer } from '../loop/durable.ts'

/** What the next round needs: the tool's own state, and a response to each of these questions. */
export type NextRound = { state: Json; questions: Record<string, RoundQuestion> }

export type RoundQuestion = { title: string; detail?: string; schema?: JsonObject }

/** What a tool gets of the round before. */
export type GivenRound = { state: Json; answers: Record<string, ToolAnswer> }

/** A tool with rounds throws it where a round has no result yet. */
export class RoundOver extends Error {
  readonly next: NextRound

  constructor(next: NextRound) {
    super('The call goes on in another round')
    this.next = next
  }
}
