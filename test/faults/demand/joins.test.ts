/**
 * Inputs that join a turn while a process dies: behind each step of a join, of the claim that merges and of the end that confirms. Each input is a message
 * exactly once, and in order, and the end of each turn is delivered to a webhook, whichever process is killed.
 */
import { fileURLToPath } from 'node:url'
import { createClient } from '@rivulet/client'
import type { Failpoint } from '@rivulet/runtime/failpoint'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { faultsOf } from '../../support/judge/task-laws.ts'
import { type Platform, shortLease, startPlatform } from '../../support/platform/platform.ts'
import type { PlatformProcess } from '../../support/platform/platform-process.ts'
import { until } from '../../support/until.ts'
import { type ArmedTree, createArmedTree } from '../armed-tree.ts'
import { hurryDeliveries, receiveDeliveries } from '../disturbances.ts'

const AGENT_FILES = fileURLToPath(new URL('../../support/agents/join-agent.ts', import.meta.url))

let platform: Platform
let tree: ArmedTree
let closeReceiver: () => void
/** What a webhook got: the id, and of which turn. */
const delivered: { id: string; turn: string }[] = []

beforeAll(async () => {
  tree = createArmedTree()
  platform = await startPlatform({ workers: 0, tree, env: { ...shortLease, WEBHOOK_ALLOW_PRIVATE: 'on' } })
  const { url, close } = await receiveDeliveries(
    async ({ id, data: { task, turn } }) => void delivered.push({ id, turn: `${task} ${turn}` }),
  )
  closeReceiver = close
  await createClient({ url: platform.url }).webhooks.create({ url, events: ['turn.finished'] })
})
afterAll(async () => {
  closeReceiver()
  await platform.close()
  tree.remove()
})

const ofWorker: Failpoint[] = ['take answered', 'joined', 'finish answered']
const ofApi: Failpoint[] = ['taken', 'folded', 'committed', 'announced']

test.each([...ofWorker, ...ofApi])('a process is killed at "%s": two injected inputs are messages once, in order', async point => {
  const trap = await trapped(point, ofWorker.includes(point) ? 'worker' : 'api')
  const { task } = await platform.client.createTask({ agent: 'join-by-hand', input: '2' })
  await platform.client.addTurn(task.id, { input: 'one', ifBusy: 'inject' })
  await platform.client.addTurn(task.id, { input: 'two', ifBusy: 'inject' })
  await trap.survived()
  await platform.client.addTurn(task.id, { input: 'three' })
  expect(await saidTo(task.id)).toEqual(['1: 2', '1: one', '1: two', '4: three'])
  await trap.over()
})

test.each(['claimed', 'committed'] as const)('an API is killed at "%s" of merged inputs: they are messages once, in order', async point => {
  const { task } = await platform.client.createTask({ agent: 'join-by-hand', start: false })
  for (const input of ['one', 'two', 'three']) await platform.client.addTurn(task.id, { input, ifBusy: 'merge' })
  const trap = await trapped(point, 'api')
  await trap.survived()
  expect(await saidTo(task.id)).toEqual(['1: one', '1: two', '1: three'])
  await trap.over()
})

async function saidTo(task: string): Promise<string[]> {
  await platform.client.waitForEnd(task, { timeoutMs: 60_000 })
  expect(await faultsOf(platform, task)).toEqual([])
  const { turns } = await platform.client.detail(task)
  const { rows } = await platform.pg.query("select turn from feed where task = $1 and type = 'turn.finished' order by turn", [task])
  expect(rows).toEqual(turns.map(({ number }) => ({ turn: number })))
  for (const { number } of turns) {
    const ids = () => new Set(delivered.flatMap(({ id, turn }) => (turn === `${task} ${number}` ? [id] : [])))
    await until('the end of each turn is delivered', async () => {
      await hurryDeliveries({ platform })
      return ids().size > 0
    })
    expect(ids().size).toBe(1)
  }
  const messages = await platform.client.messages(task)
  return messages.flatMap(({ author, turn, content }) => (author === 'user' && content.type === 'text' ? [`${turn}: ${content.text}`] : []))
}

/** A worker, at an API of its own, of which one is killed at the failpoint. What died is replaced. */
async function trapped(point: Failpoint, victim: 'worker' | 'api') {
  const url = `http://127.0.0.1:${await freePort()}`
  const FAILPOINTS = `${point}=kill`
  const api = await platform.startApi({ port: new URL(url).port, env: victim === 'api' ? { FAILPOINTS } : {} })
  const worker = await platform.startWorker({ RIVULET_URL: url, AGENT_FILES, ...(victim === 'worker' && { FAILPOINTS }) })
  const all: PlatformProcess[] = [api, worker]
  return { survived, over }

  async function survived(): Promise<void> {
    const dying = victim === 'api' ? api : worker
    await dying.exited
    expect(dying.lines.some(({ msg }) => msg === `failpoint ${point}: kill`)).toBe(true)
    all.push(
      victim === 'api'
        ? await platform.startApi({ port: new URL(url).port })
        : await platform.startWorker({ RIVULET_URL: url, AGENT_FILES }),
    )
  }

  async function over(): Promise<void> {
    await Promise.all(all.map(process => process.kill('SIGTERM')))
  }
}
