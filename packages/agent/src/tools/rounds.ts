/**
 * Calls that take several rounds, because the tool asks its turn for something, or has begun work elsewhere that it comes back to.
 *
 * Each round is a step, and questions are asked between the steps, before any response message is open. So the turn can wait without a worker, and an
 * attempt after a crash repeats no round that was over.
 */
import type { TakeDurably, ToolAnswer, ToolQuestion } from '../loop/durable.ts'
import type { DecideDeps } from './approval.ts'
import { type GivenRound, type NextRound, RoundOver, type RoundQuestion } from './round.ts'
import type { ToolOutcome } from './tool-execution.ts'

type RoundsDeps = {
  take: TakeDurably
  ask: DecideDeps['ask']
  call: Pick<ToolQuestion, 'tool' | 'callId' | 'arguments'>
  /** Runs one round. Rejects with `RoundOver`. */
  execute(given: GivenRound | undefined): Promise<ToolOutcome>
  isAborted(): boolean
}

const maxRounds = 20

/** @param name that of the call, for its steps and waits. */
export async function runRounds(name: string, { take, ask, call, execute, isAborted }: RoundsDeps): Promise<ToolOutcome> {
  let given: GivenRound | undefined
  for (let round = 1; round <= maxRounds; round += 1) {
    const done = await take(`${name} round ${round}`, {
      work: () => execute(given).catch(nextRound),
      toMemory: result => (isAborted() ? null : result),
      fromMemory: (stored: ToolOutcome | NextRound) => stored,
    })
    if (!('questions' in done)) return done
    const answers = await answersTo(done.questions, round)
    if (!answers) return { content: 'Not run: only a turn can ask for what the tool needs.', isError: true }
    given = { state: done.state, answers }
  }
  return { content: `The call was given up after ${maxRounds} rounds.`, isError: true }

  async function answersTo(questions: NextRound['questions'], round: number): Promise<Record<string, ToolAnswer> | null> {
    const entries = Object.entries(questions)
    if (entries.length === 0) return {}
    if (!ask) return null
    const nameOf = (place: number) => `${name} round ${round}.${place + 1}`
    const answers = await ask(Object.fromEntries(entries.map(([, question], place) => [nameOf(place), { ...asked(question), ...call }])))
    return Object.fromEntries(entries.map(([key], place) => [key, answers[nameOf(place)] ?? { action: 'decline' }]))
  }
}

function asked(question: RoundQuestion): Omit<ToolQuestion, 'tool' | 'callId' | 'arguments'> {
  return { kind: question.schema ? 'form' : 'approval', ...question, actions: ['accept', 'decline'], onExpire: 'decline' }
}

function nextRound(error: unknown): NextRound {
  if (error instanceof RoundOver) return error.next
  throw error
}
