/** Requests that meet at two APIs: a double click on a rewind, a cancel of a tree that is half started, a delete right after an end. */
import type { WaitStatus } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { fold } from '../../support/judge/task-laws.ts'
import { startOwnWorker } from '../../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../../support/platform/platform.ts'
import type { Client } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'
import { receiveDeliveries } from '../disturbances.ts'

const rounds = 20
let platform: Platform
let clients: readonly [Client, Client]

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, env: { WEBHOOK_ALLOW_PRIVATE: 'on' } })
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  const [first, second] = platform.apis.map(platform.clientOf)
  if (!first || !second) throw new Error('There are two APIs')
  clients = [first, second]
})
afterAll(() => platform.close())

test('two rewinds at once: the log shows every turn as the rows have it', { timeout: 300_000 }, async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'one' })
    await platform.client.waitForEnd(task.id)
    const body = { input: 'again', after: 0, ifBusy: 'interrupt' }
    const replies = await Promise.all(clients.map(client => client.post(`/v1/tasks/${task.id}/turns`, body)))
    expect(replies.map(({ status }) => status)).toEqual([202, 202])
    const { turns } = await platform.client.waitForEnd(task.id)
    const stored = turns.map(({ number, status }) => `${number} ${status}`)
    expect(stored).toEqual(['1 discarded', '2 discarded', '3 completed'])
    await until(`the log of ${task.id} shows ${stored.join(', ')}`, async () => {
      const seen = fold(await platform.log(task.id)).turns.map(({ number, status }) => `${number} ${status}`)
      return seen.join() === stored.join()
    })
  }
})

test('a cancel of a parent whose children are partly queued cancels every wait, in the rows and in the log', {
  timeout: 300_000,
}, async () => {
  const sleeper = defineAgent('sleeper', turn => turn.sleep('long', { for: '1h' }))
  const parent = defineAgent('parent', async turn => {
    await turn.spawnAll(['sleeper', 'sleeper', 'idle', 'idle'].map((agent, i) => ({ name: `child ${i}`, agent })))
  })
  await startOwnWorker(platform, [parent, sleeper])
  for (const client of clients) {
    const { task } = await platform.client.createTask({ agent: 'parent' })
    await until('two children run', async () => {
      const { rows } = await platform.pg.query('select status from tasks where parent = $1', [task.id])
      return rows.filter(({ status }) => status === 'waiting').length === 2
    })
    await client.cancel(task.id)
    const { turns } = await platform.client.waitForEnd(task.id)
    const canceled = Array.from({ length: 4 }, (): WaitStatus => 'canceled')
    expect(turns[0]?.waits?.map(({ status }) => status)).toEqual(canceled)
    const { rows } = await platform.pg.query('select waits.status from waits join turns on turns.id = waits.turn where turns.task = $1', [
      task.id,
    ])
    expect(rows.map(({ status }) => status)).toEqual(canceled)
    await until('the log has canceled every wait', async () =>
      fold(await platform.log(task.id)).turns[0]?.waits?.every(({ status }) => status === 'canceled'),
    )
  }
})

test('a task that is deleted right after its end has its onEnd sent', { timeout: 300_000 }, async () => {
  const received = new Set<string>()
  const { url, close } = await receiveDeliveries(async ({ data: { task } }) => void received.add(task))
  onTestFinished(close)
  const deleted = await Promise.all(
    Array.from({ length: rounds }, async () => {
      const { task } = await platform.client.createTask({ agent: 'echo', input: 'hello', onEnd: { url } })
      await platform.client.waitForEnd(task.id)
      await clients[1].remove(task.id)
      return task.id
    }),
  )
  await until('every end was sent', () => deleted.every(task => received.has(task)))
})
