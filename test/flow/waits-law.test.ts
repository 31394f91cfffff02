/** The law of waits, for random turns: each wait opens and closes once in the log, and the rows and the state are those of the same turn without its waits. */
import type { Message, Wait } from '@rivulet/protocol'
import { defineAgent, type Turn } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const plans = 24
const kinds = ['send', 'stream', 'step', 'state', 'park', 'hold', 'both', 'sleep'] as const
type Part = (typeof kinds)[number]

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

test(`${plans} random turns have the rows of the same turns without waits`, async () => {
  await startOwnWorker(platform, [defineAgent('planned', play)])
  const random = seededRandom(24)
  const runs = await Promise.all(
    Array.from({ length: plans }, async () => {
      const plan = Array.from({ length: 2 + Math.floor(random() * 8) }, () => kinds[Math.floor(random() * kinds.length)] ?? 'send')
      const [waiting, plain] = await Promise.all([true, false].map(waits => create({ plan, waits })))
      return { plan, waiting: waiting ?? '', plain: plain ?? '' }
    }),
  )
  await until('every turn has ended', async () => (await answerAll()) === 0 && (await haveEnded()), { intervalMs: 200 })
  for (const { plan, waiting, plain } of runs) {
    const [rows, expected] = await Promise.all([waiting, plain].map(async task => (await platform.client.messages(task)).map(rowOf)))
    expect([plan, rows]).toEqual([plan, expected])
    const { turns, state } = await platform.client.detail(waiting)
    expect([plan, state]).toEqual([plan, (await platform.client.detail(plain)).state])
    expect([plan, turns[0]?.waits?.length ?? 0]).toEqual([plan, plan.reduce((sum, part) => sum + waitsIn(part), 0)])
    expect(await faultsOf(platform, waiting)).toEqual([])
  }

  async function haveEnded(): Promise<boolean> {
    const { rows } = await platform.pg.query("select from tasks where status <> 'completed' limit 1")
    return rows.length === 0
  }
})

async function play(turn: Turn): Promise<void> {
  const { plan, waits } = turn.params as { plan: Part[]; waits: boolean }
  for (const [place, part] of plan.entries()) await playPart(turn, part, place, waits)
}

async function playPart(turn: Turn, part: Part, place: number, waits: boolean): Promise<void> {
  const question = { title: `${part} ${place}`, hold: part === 'hold' ? ('1h' as const) : 0 }
  switch (part) {
    case 'send':
      return void (await turn.send(`sent ${place}`))
    case 'stream': {
      const message = turn.message()
      for (const word of ['some ', 'words ', `${place}`]) await message.append(word)
      return message.finish()
    }
    case 'step':
      return turn.step(`step ${place}`, () => turn.send(`in a step ${place}`).then(() => {}))
    case 'state':
      await turn.state.patch({ [`place ${place}`]: place })
      return turn.step(`state ${place}`, () => turn.state.patch({ last: place }))
    case 'park':
    case 'hold':
      return void (waits && (await turn.ask(`w${place}`, question)))
    case 'both':
      return void (waits && (await turn.askAll({ [`a${place}`]: question, [`b${place}`]: question })))
    case 'sleep':
      return void (waits && (await turn.sleep(`s${place}`, { for: '20ms' })))
  }
}

function waitsIn(part: Part): number {
  return part === 'both' ? 2 : ['park', 'hold', 'sleep'].includes(part) ? 1 : 0
}

async function create(params: object): Promise<string> {
  return (await platform.client.createTask({ agent: 'planned', input: 'go', params })).task.id
}

/** Responds to everything that is open. Returns how many there were. */
async function answerAll(): Promise<number> {
  const { body } = await platform.client.get<{ data: Wait[] }>('/v1/waits?kind=approval,form')
  await Promise.all(body.data.map(({ task, id }) => platform.client.post(`/v1/tasks/${task}/waits/${id}/answer`, { action: 'accept' })))
  return body.data.length
}

function rowOf({ index, turn, author, content, metadata, status, stopReason }: Message) {
  return { index, turn, author, content, metadata, status, stopReason }
}
