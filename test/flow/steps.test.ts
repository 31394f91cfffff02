/**
 * Durable steps, seen from outside: a step is taken once, whatever becomes of the attempt that took it, and what it said and answered is there
 * in the next. Only the worker that holds a turn can store a step.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Step } from '@rivulet/contract/tasks'
import type { Event } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createGate } from '../support/gate.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { keepHold } from '../support/keep-hold.ts'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { PlatformProcess } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: shortLease })
})
afterAll(() => platform.close())

const agentFile = fileURLToPath(new URL('../support/agents/step-agents.ts', import.meta.url))

describe('a worker process', () => {
  beforeAll(async () => {
    await Promise.all(Array.from({ length: 3 }, () => platform.startWorker({ AGENT_FILES: agentFile })))
  })

  test('that is killed between two steps: the first is not taken again, and viewers read what is stored', async () => {
    const outside = await listen(async (what, count, pid) => {
      if (what !== 'between' || count > 1) return true
      await workerOf(pid).kill('SIGKILL')
      return false
    })
    const { task } = await platform.client.createTask({ agent: 'stepper', params: { url: outside.url } })
    const viewer = watch(task.id, { urls: [platform.url] })
    await platform.client.waitForEnd(task.id)
    expect(outside.count()).toEqual({ draft: 1, between: 2, review: 1, after: 1 })
    expect(await textsOf(task.id)).toEqual(['A draft, in two parts.', '# Reviewed', 'A draft, in two parts. 1 1'])
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2, usage: { outputTokens: 7 } }])
    expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
    expect(await eventsOf(task.id, 2)).toEqual([
      ...['turn.started', 'message.started', 'message.finished', 'message.started', 'message.finished'],
      ...['message.started', 'message.delta', 'message.finished', 'message.replaced', 'turn.finished'],
    ])
  })

  test('that freezes in a step for longer than its lease cannot have it remembered when it wakes', async () => {
    let zombie: PlatformProcess | undefined
    const outside = await listen(async (what, count, pid) => {
      if (what === 'draft' && count === 1) {
        zombie = workerOf(pid)
        zombie.freeze()
      }
      return true
    })
    const { task } = await platform.client.createTask({ agent: 'stepper', params: { url: outside.url } })
    await platform.client.waitForEnd(task.id)
    zombie?.wake()
    await until('the zombie has noticed', () => zombie?.lines.some(line => line.msg === 'turn lost' && line.task === task.id))
    expect(outside.count()).toEqual({ draft: 2, between: 1, review: 1, after: 1 })
    expect((await textsOf(task.id)).at(-1)).toBe('A draft, in two parts. 2 1')
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  function workerOf(pid: number): PlatformProcess {
    const found = platform.workers.find(worker => worker.pid === pid)
    if (!found) throw new Error(`No worker has the pid ${pid}`)
    return found
  }
})

describe('an attempt', () => {
  test('that throws after its steps: the next has them all, also what failed in them, and its history is the same', async () => {
    const taken: string[] = []
    const results: unknown[] = []
    const agent = defineAgent('thrower', async turn => {
      const history = await turn.history()
      const nothing = await turn.step('nothing', async () => {
        taken.push('nothing')
      })
      const some = await turn.step('some', async () => {
        taken.push('some')
        await turn.message({ type: 'text', text: 'half', format: 'plain' }, () => Promise.reject(new Error('not today'))).catch(() => {})
        await turn.send({ type: 'reasoning', summary: ['so'], content: ['long', 'thoughts'] }, { model: 'x' })
        return { when: new Date(0), list: [1, null] }
      })
      results.push([history.map(({ content }) => content), nothing, some])
      if (turn.attempt < 3) throw new Error(`attempt ${turn.attempt}`)
    })
    const worker = await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'thrower', input: 'go' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await platform.client.waitForEnd(task.id)
    expect(taken).toEqual(['nothing', 'some'])
    const result = [[{ type: 'text', text: 'go', format: 'plain' }], undefined, { when: '1970-01-01T00:00:00.000Z', list: [1, null] }]
    expect(results).toEqual([result, result, result])
    expect(await platform.client.messages(task.id)).toMatchObject([
      { author: 'user' },
      { status: 'failed', content: { text: 'half' }, error: { code: 'agent_error', message: 'The agent failed' }, attempt: 3 },
      { status: 'complete', content: { summary: ['so'], content: ['long', 'thoughts'] }, metadata: { model: 'x' }, attempt: 3 },
    ])
    expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
    await worker.stop()
  })

  test('that is given back uncounted: the next worker goes on after the last step', async () => {
    const taken: string[] = []
    const waiting = createGate()
    const agent = defineAgent('patient', async turn => {
      await turn.step('once', async () => {
        taken.push('once')
        await turn.send('done')
      })
      if (taken.length === 1 && turn.attempt === 1) {
        taken.push('waits')
        waiting.open()
        await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(new Error('given back'))))
      }
    })
    const first = await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'patient' })
    await waiting.opened
    await first.stop()
    const second = await startOwnWorker(platform, [agent])
    await platform.client.waitForEnd(task.id)
    expect(taken).toEqual(['once', 'waits'])
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await textsOf(task.id)).toEqual(['done'])
    await second.stop()
  })

  test('whose log is lost between its steps: both are remembered, and the next attempt has them', async () => {
    const taken: string[] = []
    const first = createGate()
    const wiped = createGate()
    const agent = defineAgent('reopened', async turn => {
      for (const name of ['a', 'b']) {
        await turn.step(name, async () => {
          taken.push(name)
          await turn.send(name)
        })
        if (turn.attempt > 1) continue
        first.open()
        await wiped.opened
      }
      if (turn.attempt === 1) throw new Error('once')
    })
    const worker = await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'reopened' })
    await first.opened
    await platform.redis.del(platform.keys.stream(task.id))
    wiped.open()
    await platform.client.waitForEnd(task.id)
    expect(taken).toEqual(['a', 'b'])
    expect(await textsOf(task.id)).toEqual(['a', 'b'])
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    await worker.stop()
  })

  test('that is canceled in a step: the step is not remembered, and what it said is kept as aborted', async () => {
    const begun = createGate()
    const agent = defineAgent('canceled', async turn => {
      await turn.step('never', async () => {
        turn.message({ type: 'text', text: 'half', format: 'plain' })
        begun.open()
        await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()))
      })
    })
    const worker = await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'canceled' })
    await begun.opened
    await until('its word is in the log', async () => (await eventsOf(task.id, 1)).includes('message.started'))
    await platform.client.cancel(task.id)
    expect(await platform.client.messages(task.id)).toMatchObject([{ status: 'aborted', content: { text: 'half' } }])
    await worker.stop()
    const { rows } = await platform.pg.query('select from steps join turns on turns.id = steps.turn where turns.task = $1', [task.id])
    expect(rows).toEqual([])
  })
})

describe('the server', () => {
  test('stores a step for the worker that holds the turn, once, and returns it to the worker that claims the turn next', async () => {
    const { claim, remember, release, turnId, task } = await openTurn()
    expect(await claim('one')).toMatchObject({ result: 'claimed', steps: [] })
    expect(await remember('one', 'a', '1')).toBe('remembered')
    expect(await remember('one', 'a', '2')).toBe('remembered')
    expect(await remember('other', 'b', '3')).toBe('superseded')
    expect(await claim('one')).toMatchObject({ result: 'claimed', steps: [{ name: 'a', memory: '1' }] })
    const fenced = await metric(platform.url, 'rivulet_fenced_writes_total', { write: 'step' })
    await release()
    expect(await remember('one', 'b', '3')).toBe('superseded')
    expect(await metric(platform.url, 'rivulet_fenced_writes_total', { write: 'step' })).toBe(fenced + 1)
    expect(await claim('two')).toMatchObject({ result: 'claimed', attempt: 1, steps: [{ name: 'a', memory: '1' }] })
    expect(await remember('two', 'b', '4')).toBe('remembered')
    expect(await stored()).toEqual([
      { name: 'a', memory: '1' },
      { name: 'b', memory: '4' },
    ])
    await platform.client.cancel(task)
    expect(await remember('two', 'c', '5')).toBe('superseded')
    // The steps are kept for the next attempt, and no attempt follows. An API removes what they came to when it starts, and then every minute.
    const cleaner = await platform.startApi()
    await until('its steps are forgotten', async () => (await stored()).length === 0)
    await cleaner.kill('SIGTERM')
    const { body } = await platform.client.get<{ data: Step[] }>(`/v1/tasks/${task}/steps`)
    expect(body.data).toMatchObject([
      { turn: 1, name: 'a' },
      { turn: 1, name: 'b' },
    ])
    for (const { startedAt = '', finishedAt } of body.data) expect(Date.parse(finishedAt) - Date.parse(startedAt)).toBe(1_500)

    async function stored() {
      return (await platform.pg.query('select name, memory from steps where turn = $1 and memory is not null order by name', [turnId])).rows
    }
  })

  test('takes whatever depth and number of things, up to 16 MiB for all steps of a turn', async () => {
    const { claim, remember, task } = await openTurn()
    await claim('one')
    const deep = `${'['.repeat(5_000)}${'"\\"",'.repeat(20_000)}1${']'.repeat(5_000)}`
    expect(await remember('one', 'deep', deep)).toBe('remembered')
    expect(await claim('one')).toMatchObject({ steps: [{ name: 'deep', memory: deep }] })
    expect(await remember('one', 'quotes', '"'.repeat(10 * 1024 * 1024))).toBe('remembered')
    expect(await remember('one', 'too much', 'x'.repeat(7 * 1024 * 1024))).toBe('too_large')
    expect(await remember('one', 'quotes', '"'.repeat(10 * 1024 * 1024))).toBe('remembered')
    await platform.client.cancel(task)
  })

  /** A turn that no worker but the test itself can take. */
  async function openTurn() {
    await ask('hello', { worker: 'test', agents: [{ name: 'stepping', description: '' }] })
    const { task, turn } = await platform.client.createTask({ agent: 'stepping' })
    let [epoch, held] = [0, '']
    return {
      task: task.id,
      turnId: turn.id,
      claim: async (claimId: string) => {
        const claimed = await ask('claim', { worker: 'test', turnId: turn.id, claimId })
        if (claimed.result !== 'claimed') return claimed
        ;[epoch, held] = [Number(claimed.epoch), claimId]
        // Megabytes take a busy machine longer than a lease lasts here.
        keepHold(platform, 'test', { turnId: turn.id, epoch, claimId })
        return claimed
      },
      remember: async (claimId: string, name: string, memory: string) =>
        (await ask('step', { turnId: turn.id, claimId, name, memory, durationMs: 1_500 })).result,
      release: () => ask('release', { turnId: turn.id, epoch, claimId: held }),
    }
  }

  /** Again while the server has no time for it, or gave up on a body that took too long, as a worker does. */
  async function ask(call: string, body: object): Promise<Record<string, unknown>> {
    const { status, body: reply } = await until(`an answer to ${call}`, async () => {
      const given = await platform.client.post<Record<string, unknown>>(`/internal/${call}`, body).catch(() => null)
      return given?.status !== 503 && given
    })
    expect([status, reply.error]).toEqual([200, undefined])
    return reply
  }
})

/** An external system that counts its calls; `answer` decides whether and when the caller gets a response. */
async function listen(respond: (what: string, count: number, pid: number) => Promise<boolean>) {
  const told: string[] = []
  const count = (what: string) => told.filter(each => each === what).length
  const server = createServer(async (request, response) => {
    const [, what = '', pid = ''] = request.url?.split('/') ?? []
    told.push(what)
    const times = count(what)
    if (await respond(what, times, Number(pid))) response.end(String(times))
    else request.socket.destroy()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: () => Object.fromEntries(told.map(what => [what, count(what)])),
  }
}

async function textsOf(task: string): Promise<string[]> {
  const messages = await platform.client.messages(task)
  return messages.flatMap(({ content }) => (content.type === 'text' ? [content.text] : []))
}

async function eventsOf(task: string, attempt: number): Promise<Event['type'][]> {
  const logged = await platform.log(task)
  return logged.flatMap(({ event }) => (event.attempt === attempt ? [event.type] : []))
}
