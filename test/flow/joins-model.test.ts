/**
 * Random schedules of inputs, cancels and rewinds on one task, whose agent takes inputs at times and fails at times, judged by a model that knows nothing of how the
 * platform does it: each accepted input is a message exactly once and in order, or its turn was canceled or discarded. JOIN_SCHEDULES sets how many are tried.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { hasEnded, type Message, type Turn as StoredTurn } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const schedules = Number(process.env.JOIN_SCHEDULES ?? 10)
const atOnce = 10

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

/** Its mood is that of the seed of its task and of the turn, so a schedule is the same again. */
const moody = defineAgent({
  ...{ name: 'moody', maxAttempts: 3 },
  run: async turn => {
    const random = seededRandom(Number(turn.params) * 1_000 + turn.number * 10 + turn.attempt)
    for (let round = 0; round < 3; round += 1) {
      await turn.send(`round ${round} of turn ${turn.number}`)
      await sleep(random() * 60, undefined, { signal: turn.signal })
      if (random() < 0.6) await turn.takeInputs()
      if (random() < 0.07) throw new Error('out of sorts')
    }
  },
})

test(`${schedules} schedules: no input is lost, doubled or overtaken`, { timeout: 60_000 + schedules * 2_000 }, async () => {
  await startOwnWorker(platform, [moody])
  for (let from = 0; from < schedules; from += atOnce) {
    const seeds = Array.from({ length: Math.min(atOnce, schedules - from) }, (_, i) => from + i + 1)
    const faults = await Promise.all(seeds.map(async seed => (await play(seed)).map(fault => `schedule ${seed}: ${fault}`)))
    expect(faults.flat()).toEqual([])
  }
})

async function play(seed: number): Promise<string[]> {
  const random = seededRandom(seed)
  const { task } = await platform.client.createTask({ agent: 'moody', params: seed, input: 'input 1' })
  const accepted = new Map([[1, 'input 1']])
  for (let step = 0; step < 12; step += 1) {
    await sleep(random() * 80)
    await act(task.id, random, accepted)
  }
  await platform.client.waitForEnd(task.id, { timeoutMs: 60_000 })
  const { turns } = await platform.client.detail(task.id)
  return [...judge(accepted, turns, await platform.client.messages(task.id)), ...(await faultsOf(platform, task.id))]
}

async function act(task: string, random: () => number, accepted: Map<number, string>): Promise<void> {
  const dice = random()
  if (dice < 0.05) return void (await platform.client.cancel(task))
  if (dice < 0.12) return void (await platform.client.post(`/v1/tasks/${task}/cancel`, { scope: 'turn' }))
  if (dice < 0.2) return rewind(task, random, accepted)
  const ifBusy = dice < 0.45 ? 'inject' : dice < 0.65 ? 'merge' : dice < 0.75 ? 'interrupt' : 'queue'
  const input = `input ${accepted.size + 1}`
  const { number } = await platform.client.addTurn(task, { input, ifBusy, ...(ifBusy === 'merge' && random() < 0.3 && { debounceMs: 50 }) })
  accepted.set(number, input)
}

/** Behind a random turn; refused while the task is busy, if it does not interrupt. */
async function rewind(task: string, random: () => number, accepted: Map<number, string>): Promise<void> {
  const input = `input ${accepted.size + 1}`
  const after = Math.floor(random() * (accepted.size + 1))
  const { status, body } = await platform.client.post<{ turn: StoredTurn }>(`/v1/tasks/${task}/turns`, {
    input,
    after,
    ifBusy: random() < 0.7 ? 'interrupt' : 'queue',
  })
  if (status === 202) accepted.set(body.turn.number, input)
  else if (status !== 409 && status !== 404) throw new Error(`A rewind got ${status}`)
}

/** The model: what was accepted, in the order in which it was accepted, and nothing of the platform's rules for joining. */
function judge(accepted: ReadonlyMap<number, string>, turns: readonly StoredTurn[], messages: readonly Message[]): string[] {
  const said = messages.flatMap(({ author, content, turn }) =>
    author === 'user' && content.type === 'text' ? [{ text: content.text, turn }] : [],
  )
  const numbers = said.map(({ text }) => Number(text.slice('input '.length)))
  const faults = numbers.flatMap((number, i) =>
    i > 0 && number <= (numbers[i - 1] ?? 0) ? [`input ${number} follows ${numbers[i - 1]}`] : [],
  )
  for (const [number, input] of accepted) {
    const turn = turns.find(one => one.number === number)
    const own = said.filter(({ text }) => text === input)
    if (!turn || !hasEnded(turn.status)) faults.push(`turn ${number} is ${turn?.status}`)
    if (own.length > 1) faults.push(`${input} is ${own.length} messages`)
    if (own.length === 0 && turn?.status !== 'canceled' && turn?.status !== 'discarded')
      faults.push(`${input} is lost: its turn is ${turn?.status}`)
    const host = turn?.joinedTo ?? number
    if (own[0] && own[0].turn !== host) faults.push(`${input} is a message of turn ${own[0].turn} instead of ${host}`)
    const status = turns.find(one => one.number === host)?.status
    if (turn && turn.status !== status) faults.push(`turn ${number} is ${turn.status}, but turn ${host}, which it joined, is ${status}`)
  }
  return faults
}
