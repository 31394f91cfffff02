/** An agent that says half of a text and goes on when its test lets it, and what happens to its log meanwhile. */
import { defineAgent, delta } from '@rivulet/worker'
import { onTestFinished } from 'vitest'
import { createGate } from '../support/gate.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

/** What it says in each of its turns. */
export const halves = ['half', ' and half'] as const

/** `goOn` is for the turn of this number. */
export function haltingAgent() {
  const gates = [createGate(), createGate()]
  const agent = defineAgent('halting', async function* (turn) {
    yield delta(0, halves[0])
    await gates[turn.number - 1]?.opened
    yield delta(0, halves[1])
  })
  return { agent, goOn: (turnNumber: number) => gates[turnNumber - 1]?.open() }
}

/** As if Redis had lost it. */
export async function wipeLog({ redis, keys }: Platform, task: string): Promise<void> {
  await redis.del(keys.stream(task), keys.state(task))
}

/** A task in the middle of its second turn, whose log has lost the first one by its age: `place` is a cursor of the first. */
export async function taskWithGap() {
  const own = await startPlatform({ apis: 2, workers: 0, env: { LOG_RETENTION_MS: '1' } })
  onTestFinished(() => own.close())
  const { agent, goOn } = haltingAgent()
  await startOwnWorker(own, [agent])
  const name = crypto.randomUUID()
  const { task } = await own.client.createTask({ agent: 'halting', name, input: 'one' })
  const place = await until('the first turn speaks', async () => (await own.log(task.id)).find(({ event }) => hasSpoken(event))?.cursor)
  const turn = await own.client.addTurn(task.id, { input: 'two' })
  goOn(1)
  await until('only the second turn is in the log', async () => {
    const events = (await own.log(task.id)).map(({ event }) => event)
    return events.every(event => event.turn === 2) && events.some(hasSpoken)
  })
  return { own, name, task: task.id, turn: turn.id, place, goOn: () => goOn(2) }
}

function hasSpoken({ type }: { type: string }): boolean {
  return type === 'message.delta' || type === 'message.started'
}
