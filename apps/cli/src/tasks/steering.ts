/** Sends the lines that a person types to a task, in order. The turn that runs takes each at a safe point; one that it does not take is the next turn. */
import type { TaskHandle, Turn } from '@rivulet/client'
import { sentenceOf } from '../terminal/failure-sentence.ts'
import type { Pen } from '../terminal/pen.ts'

type SteeringDeps = { task: Pick<TaskHandle, 'send'>; noted: Pen; url: string }

type KnownTurn = Pick<Turn, 'number' | 'joinedTo'>

export function createSteering({ task, noted, url }: SteeringDeps) {
  /** The turns of the lines that no turn has taken. */
  const waiting = new Set<number>()
  let sending: Promise<void> = Promise.resolve()
  return { send, look, unseen }

  function send(line: string): void {
    if (line.trim() !== '') sending = sending.then(() => accept(line))
  }

  async function accept(line: string): Promise<void> {
    try {
      const { number } = await task.send(line, { ifBusy: 'inject' })
      waiting.add(number)
      note(`› waits as turn ${number}`)
    } catch (error) {
      note(sentenceOf(error, url))
    }
  }

  /** Called with the turns of the task after every event. */
  function look(turns: readonly KnownTurn[]): void {
    for (const { number, joinedTo } of turns) {
      if (joinedTo !== undefined && waiting.delete(number)) note(`› turn ${joinedTo} has taken turn ${number}`)
    }
  }

  /** The first turn of a typed line that is not among these turns; null when all are. */
  async function unseen(turns: readonly KnownTurn[]): Promise<number | null> {
    await sending
    const known = turns.at(-1)?.number ?? 0
    return [...waiting].filter(number => number > known).sort((a, b) => a - b)[0] ?? null
  }

  function note(line: string): void {
    noted.freshLine()
    noted.write(`${noted.style('dim', line)}\n`)
  }
}
