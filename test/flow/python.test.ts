/** The package for Python against the platform: its worker and its client. Skipped where there is no Python 3.10 or newer, and the title says so. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { custom, delta, done, type Event, full, mergeDeltas, start, toolRequest } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0
const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const source = pathOf('../../sdks/python/src')

type PythonWorker = { process: ChildProcess; said: string[]; log: () => string }

describe.skipIf(!hasPython)('[needs python3] the package for Python', () => {
  let platform: Platform
  const workers: PythonWorker[] = []

  beforeAll(async () => {
    platform = await startPlatform({ apis: 2, workers: 0, env: shortLease })
  })
  afterEach(async () => {
    for (const { process } of workers.splice(0)) {
      if (process.exitCode !== null || process.signalCode !== null) continue
      const gone = once(process, 'exit')
      process.kill('SIGKILL')
      await gone
    }
  })
  afterAll(() => platform.close())

  /** Ready when this resolves. */
  async function startWorker({ drainSeconds = 30, url = platform.url } = {}): Promise<PythonWorker> {
    const process = spawn('python3', [pathOf('../support/python/agents.py'), String(drainSeconds)], { env: environment(url) })
    let output = ''
    process.stdout.setEncoding('utf8').on('data', text => (output += text))
    let log = ''
    process.stderr.setEncoding('utf8').on('data', text => (log += text))
    const worker: PythonWorker = {
      process,
      get said() {
        return output.split('\n').filter(line => line !== '')
      },
      log: () => log,
    }
    workers.push(worker)
    await until('the worker in Python is ready', async () => {
      expect([process.exitCode, log]).toEqual([null, expect.anything()])
      return log.includes('worker is ready')
    })
    return worker
  }

  const environment = (url: string) => ({ ...process.env, PYTHONPATH: source, PYTHONDONTWRITEBYTECODE: '1', RIVULET_URL: url })
  const newGate = () => join(tmpdir(), `rivulet-gate-${randomUUID()}`)
  const textsOf = async (task: string) =>
    (await platform.client.messages(task)).flatMap(({ content, author }) => (author === 'agent' && 'text' in content ? [content.text] : []))

  /** Neighbouring deltas are merged while they wait, so where they are cut is chance. */
  async function eventsOf(task: string): Promise<unknown[]> {
    const merged: Event[] = []
    for (const { event } of await platform.log(task)) {
      const last = merged.at(-1)
      const sum = last?.type === 'message.delta' && event.type === 'message.delta' && last.index === event.index
      const whole = sum ? mergeDeltas(last.delta, event.delta) : null
      if (last?.type === 'message.delta' && whole) merged[merged.length - 1] = { ...last, delta: whole }
      else merged.push(event)
    }
    return merged.map(({ task: _, at: __, ...event }) => (event.type.startsWith('turn.') ? { type: event.type } : event))
  }

  test('writes the same log in each of its three ways, and the same as a worker in TypeScript', async () => {
    const worker = await startWorker()
    const own = defineAgent(`ts-${randomUUID()}`, async function* () {
      for (const word of ['one ', 'two ', 'three 😀']) yield delta(0, word)
      yield done(0, { usage: { inputTokens: 2, outputTokens: 3 }, response: { id: 'r', model: 'm' } })
      yield start(1, toolRequest('c', 'look', {}))
      yield delta(1, { type: 'tool_request', text: '{"a":1}' })
      yield done(1)
      yield custom('note', { n: 1 })
      yield full(2, 'whole')
    })
    await startOwnWorker(platform, [own])
    const agents = [own.name, 'py-generator', 'py-auto', 'py-manual']
    const tasks = await Promise.all(agents.map(agent => platform.client.finishedTask({ agent, input: 'hello' })))
    const [expected, ...logs] = await Promise.all(tasks.map(({ task }) => eventsOf(task.id)))
    for (const [i, log] of logs.entries()) expect([agents[i + 1], log]).toEqual([agents[i + 1], expected])
    const ends = tasks.map(({ turns: [turn] }) => [turn?.status, turn?.stopReason, turn?.usage])
    expect(ends).toEqual(ends.map(() => ['completed', 'tool_use', { inputTokens: 2, outputTokens: 3 }]))
    for (const { task } of tasks) expect(await faultsOf(platform, task.id)).toEqual([])
    expect(worker.said).toContain("sent one two three 😀whole {'a': 1}")
  })

  test('tries a failed turn again, and does not run its step again', async () => {
    const worker = await startWorker()
    const { task, turns, state } = await platform.client.finishedTask({ agent: 'py-retry', input: 'hello' })
    expect(worker.said.filter(line => line === 'draft')).toHaveLength(1)
    expect(await textsOf(task.id)).toEqual(['a draft', '2 words, attempt 2'])
    expect(turns).toMatchObject([{ status: 'completed', attempt: 2, usage: { inputTokens: 1 } }])
    expect(state).toEqual({ version: 1, value: { drafts: 1 } })
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('parks for an answer and for a time, and says nothing twice', async () => {
    const worker = await startWorker()
    const { task } = await platform.client.createTask({ agent: 'py-wait', input: 'hello' })
    const { turns } = await platform.client.waitForTask(task.id, ({ task: { status } }) => status === 'waiting')
    const wait = turns[0]?.waits?.[0]
    expect(wait).toMatchObject({ name: 'go', status: 'open', kind: 'approval' })
    const answered = await createClient(() => platform.url).post(`/v1/tasks/${task.id}/waits/${wait?.id}/answer`, { action: 'accept' })
    expect(answered.status).toBe(200)
    const end = await platform.client.waitForEnd(task.id)
    expect(end.turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(end.state).toEqual({ version: 1, value: { asked: true } })
    expect(await textsOf(task.id)).toEqual(['before', 'accept 1'])
    // The time may be over before the turn has parked for it.
    expect(worker.said.filter(line => line === 'asking').length).toBeGreaterThanOrEqual(2)
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('waits for a child, and reads what it said', async () => {
    await startWorker()
    const { task } = await platform.client.finishedTask({ agent: 'py-parent', input: 'hello' })
    expect(await textsOf(task.id)).toEqual(['completed: one two three 😀whole'])
  })

  test('stores and reads files', async () => {
    await startWorker()
    const { task } = await platform.client.finishedTask({ agent: 'py-files', input: 'hello' })
    expect(await textsOf(task.id)).toEqual(['ä.txt bytes none'])
  })

  test('cancels the handler of a canceled turn', async () => {
    const worker = await startWorker()
    const { task } = await platform.client.createTask({ agent: 'py-slow', input: 'hello', params: { until: newGate() } })
    await until('the turn has begun', async () => worker.said.includes('begun 1'))
    await platform.client.cancel(task.id)
    await until('the handler is canceled', async () => worker.said.includes('canceled'))
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is fenced after it was frozen for longer than its lease: another worker finishes the turn', async () => {
    const frozen = await startWorker()
    const gate = newGate()
    const { task } = await platform.client.createTask({ agent: 'py-slow', input: 'hello', params: { until: gate } })
    await until('the turn has begun', async () => frozen.said.includes('begun 1'))
    frozen.process.kill('SIGSTOP')
    const other = await startWorker({ url: platform.urls[1] ?? '' })
    await until('the other worker has the turn', async () => other.said.includes('begun 2'))
    frozen.process.kill('SIGCONT')
    await until('the frozen worker has lost it', async () => frozen.said.includes('canceled'))
    writeFileSync(gate, '')
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    expect(await textsOf(task.id)).toEqual(['begun done'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('drains at SIGTERM: its turns end before it does', async () => {
    const gate = newGate()
    const leaving = await startWorker({ drainSeconds: 600 })
    const { task } = await platform.client.createTask({ agent: 'py-slow', input: 'hello', params: { until: gate } })
    await until('the turn has begun', async () => leaving.said.includes('begun 1'))
    const exit = once(leaving.process, 'exit')
    leaving.process.kill('SIGTERM')
    writeFileSync(gate, '')
    expect(await exit).toEqual([0, null])
    expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  })

  test('releases what a drain leaves to another worker', async () => {
    const gate = newGate()
    const leaving = await startWorker({ drainSeconds: 0 })
    const { task } = await platform.client.createTask({ agent: 'py-slow', input: 'hello', params: { until: gate } })
    await until('the turn has begun', async () => leaving.said.includes('begun 1'))
    const exit = once(leaving.process, 'exit')
    leaving.process.kill('SIGTERM')
    expect(await exit).toEqual([0, null])
    const other = await startWorker()
    await until('the other worker has the turn', async () => other.said.includes('begun 1'))
    writeFileSync(gate, '')
    expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  })

  test('gets the answer of a question that is asked beside a running step', async () => {
    await startWorker()
    const { task } = await platform.client.createTask({ agent: 'py-beside', input: 'hello' })
    const { turns: asking } = await platform.client.waitForTask(task.id, found => found.turns[0]?.waits?.[0] !== undefined)
    const wait = asking[0]?.waits?.[0]
    const answered = await createClient(() => platform.url).post(`/v1/tasks/${task.id}/waits/${wait?.id}/answer`, { action: 'accept' })
    expect(answered.status).toBe(200)
    expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await textsOf(task.id)).toEqual(['accept'])
  })

  test('takes inputs that join the turn, and a later attempt takes them in the same place', async () => {
    const worker = await startWorker()
    const { task } = await platform.client.createTask({ agent: 'py-take', input: 'hello' })
    await until('the turn has begun', async () => worker.said.includes('begun 1'))
    await platform.client.addTurn(task.id, { input: 'and this', ifBusy: 'inject' })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 2 }, { joinedTo: 1 }])
    expect(await textsOf(task.id)).toEqual(['begun', 'joined and this'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('keeps values for a customer, which the next task of the customer finds', async () => {
    await startWorker()
    const texts: string[] = []
    for (let i = 1; i <= 2; i += 1) {
      const { task } = await platform.client.createTask({ agent: 'py-store', input: 'hello', concurrencyKey: 'ada' })
      await platform.client.waitForEnd(task.id)
      texts.push(...(await textsOf(task.id)))
    }
    expect(texts).toEqual(['1 None None', '2 None None'])
    const stored = await platform.client.get('/v1/store/customer:ada/visits')
    expect(stored.body).toMatchObject({ value: 2 })
  })

  test('uploads and downloads files, sends signals, and follows the feed', async () => {
    await startWorker()
    // If a check fails, the call rejects with the output of the script.
    await promisify(execFile)('python3', [pathOf('../support/python/calls.py')], { env: environment(platform.url) })
  })

  test.each(['checks.py', 'adapters.py'])('keeps what it promises without a platform (%s)', async script => {
    // If a check fails, the call rejects with the output of the script.
    const { stderr } = await promisify(execFile)('python3', [pathOf(`../support/python/${script}`)], { env: environment(platform.url) })
    expect(stderr).toMatch(/^OK\b/m)
  })

  test('streams a task, and resumes at each of its cursors', async () => {
    await startWorker()
    const script = pathOf('../support/python/client.py')
    const { stdout } = await promisify(execFile)('python3', [script, 'py-generator'], { env: environment(platform.url) })
    const read = JSON.parse(stdout) as Record<'text' | 'streamed' | 'task', string> & {
      cursors: string[]
      resumed: string[][]
      types: string[]
    }
    expect([read.text, read.streamed]).toEqual(['one two three 😀whole', 'one two three 😀whole'])
    expect(read.types.at(-1)).toBe('end')
    expect(read.cursors.length).toBeGreaterThan(8)
    expect(read.resumed).toEqual(read.cursors.slice(0, -1).map((_, i) => read.cursors.slice(i + 1)))
  })
})
