/**
 * Random schedules of inputs, decisions, cancels and rewinds on one task, and a model that judges what became of them. The model knows nothing of how the
 * platform does it: each accepted input is a message exactly once and in order, or its turn was canceled or discarded.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { hasEnded, type Message, type Turn as StoredTurn } from '@rivulet/protocol'
import { seededRandom } from '../agents/scripts.ts'
import type { Platform } from '../platform/platform.ts'
import { until } from '../until.ts'
import { faultsOf } from './task-laws.ts'

/** Most of a schedule is waiting: for the next input, an answer, the lease of a worker that was killed. */
const atOnce = 20

/** Plays the schedules of so many seeds, some at a time, and returns their faults. Begins no further one when there are any. */
export async function playSchedules(platform: Platform, schedules: number): Promise<string[]> {
  const faults: string[] = []
  let played = 0
  await Promise.all(Array.from({ length: atOnce }, playOn))
  return faults

  async function playOn(): Promise<void> {
    while (played < schedules && faults.length === 0) {
      played += 1
      const seed = played
      faults.push(...(await play(platform, seed)).map(fault => `schedule ${seed}: ${fault}`))
    }
  }
}

async function play(platform: Platform, seed: number): Promise<string[]> {
  const random = seededRandom(seed)
  const { task } = await platform.client.createTask({ agent: 'moody', params: seed, input: 'input 1' })
  const accepted = new Map([[1, 'input 1']])
  for (let step = 0; step < 12; step += 1) {
    await sleep(random() * 80)
    await act(platform, task.id, random, accepted)
  }
  const { turns } = await until(`schedule ${seed} has ended`, () => endOf(platform, task.id), { timeoutMs: 600_000 })
  return [...judge(accepted, turns, await platform.client.messages(task.id)), ...(await faultsOf(platform, task.id))]
}

async function act(platform: Platform, task: string, random: () => number, accepted: Map<number, string>): Promise<void> {
  const dice = random()
  if (dice < 0.05) return void (await platform.client.cancel(task))
  if (dice < 0.12) return void (await platform.client.insist(`/v1/tasks/${task}/cancel`, { scope: 'turn' }))
  if (dice < 0.2) return rewind(platform, task, random, accepted)
  if (dice < 0.3) return answerAll(platform, task, random)
  const ifBusy = dice < 0.5 ? 'inject' : dice < 0.65 ? 'merge' : dice < 0.75 ? 'interrupt' : dice < 0.8 ? 'decline' : 'queue'
  const input = `input ${accepted.size + 1}`
  const { number } = await platform.client.addTurn(task, { input, ifBusy, ...(ifBusy === 'merge' && random() < 0.3 && { debounceMs: 50 }) })
  accepted.set(number, input)
}

/** What the agent asks; another answer, or the end of the turn, may come first. */
async function answerAll(platform: Platform, task: string, random: () => number): Promise<void> {
  const { turns } = await platform.client.detail(task)
  for (const { id, status } of turns.flatMap(({ waits = [] }) => waits)) {
    if (status !== 'open') continue
    const action = random() < 0.5 ? 'accept' : 'decline'
    const reply = await platform.client.insist(`/v1/tasks/${task}/waits/${id}/answer`, { action })
    if (![200, 404, 409, 410].includes(reply.status)) throw new Error(`An answer got ${reply.status}`)
  }
}

/** The task when all its turns have ended. Until then, all that its agent asks is answered. */
async function endOf(platform: Platform, task: string) {
  await answerAll(platform, task, () => 0)
  const detail = await platform.client.detail(task)
  return detail.turns.every(({ status }) => hasEnded(status)) && detail
}

/** Behind a random turn; refused while the task is busy, if it does not interrupt. */
async function rewind(platform: Platform, task: string, random: () => number, accepted: Map<number, string>): Promise<void> {
  const input = `input ${accepted.size + 1}`
  const after = Math.floor(random() * (accepted.size + 1))
  const { status, body } = await platform.client.insist<{ turn: StoredTurn }>(`/v1/tasks/${task}/turns`, {
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
