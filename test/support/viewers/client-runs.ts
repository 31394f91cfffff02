/**
 * The client SDK against a real platform, over a network that does everything a network may do: connections break after any byte, what the
 * server says comes in pieces and late, requests arrive twice, and a reconnect may be answered from further back than it asked.
 *
 * A run creates a task, watches it in all four ways, and sometimes goes on with a second turn or cancels. Afterwards what the client holds is
 * compared with what Postgres and the log have; each difference is a sentence. What is random comes from the seed.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  createClient,
  isLogged,
  type Json,
  type RivuletClient,
  RivuletError,
  type TaskEvent,
  type TaskHandle,
  textOf,
} from '@rivulet/client'
import { extend, fail, full, rest, type Step, say, seededRandom, start } from '../agents/scripts.ts'
import { faultsOf } from '../judge/task-laws.ts'
import type { Platform } from '../platform/platform.ts'
import { type Garbled, startChoppingProxy } from './chopping-proxy.ts'

type ClientRuns = {
  faults: string[]
  /** Requests for events, of all runs: more than one for each reader means that connections broke. */
  connections: number
  repeatedPosts: number
  replays: number
  repairs: number
  seeds: number[]
}

type Plan = {
  params: object
  /** The second turn's, if there is one; sent while the first runs, or after it. */
  more: { params: object; isLate: boolean } | null
  isCanceled: boolean
  /** Whether `text()` can be exact: no text is sent again. */
  isPlain: boolean
}

/** @param lanes runs at a time; each lane has a network of its own. */
export async function runClients(
  platform: Platform,
  { seeds, lanes, onRun }: { seeds: readonly number[]; lanes: number; onRun?: (done: number) => void | Promise<void> },
): Promise<ClientRuns> {
  const total: ClientRuns = { faults: [], connections: 0, repeatedPosts: 0, replays: 0, repairs: 0, seeds: [] }
  const queue = [...seeds]
  await Promise.all(Array.from({ length: lanes }, (_, lane) => runLane(lane)))
  return total

  async function runLane(lane: number): Promise<void> {
    const proxy = await startChoppingProxy(platform.url, {
      seed: (seeds[0] ?? 0) + lane,
      pieceBytes: 20 + 200 * lane,
      heldBytes: lane % 2 === 0 ? 0 : 3_000,
      breakAfter: random => breakingPoint(random()),
      garble,
    })
    // This network breaks nearly every second answer: by default a call would give up once in a few thousand.
    const client = createClient({ url: proxy.url, fetch: countingFetch, maxRetries: 30 })
    try {
      for (let seed = queue.shift(); seed !== undefined; seed = queue.shift()) {
        const faults = await run(client, seed).catch((error: unknown) => [error instanceof Error ? String(error.stack) : String(error)])
        total.faults.push(...faults.map(fault => `seed ${seed}: ${fault}`))
        total.seeds.push(seed)
        await onRun?.(total.seeds.length)
      }
    } finally {
      await proxy.close()
    }
  }

  function countingFetch(...request: Parameters<typeof fetch>): Promise<Response> {
    if (String(request[0]).includes('/events')) total.connections += 1
    return fetch(...request)
  }

  function garble(said: Buffer, random: () => number): Garbled {
    if (said.subarray(0, 5).toString() === 'POST ' && random() < 0.4) {
      total.repeatedPosts += 1
      return { said, isRepeated: true }
    }
    const text = said.toString('latin1')
    const [asked, epoch, seq] = /after=(\d+)-(\d+)/.exec(text) ?? []
    if (asked === undefined || !text.startsWith('GET ') || Number(seq) < 4 || random() < 0.7) return { said }
    total.replays += 1
    return { said: Buffer.from(text.replace(asked, `after=${epoch}-${Number(seq) - 1 - Math.floor(random() * 3)}`), 'latin1') }
  }

  async function run(client: RivuletClient, seed: number): Promise<string[]> {
    const plan = planOf(seededRandom(seed))
    const task = await client.tasks.create({
      agent: 'scripted',
      input: `go ${seed}`,
      params: json(plan.params),
      metadata: { run: `r${seed}` },
    })
    const view = task.view()
    const leave = view.subscribe(() => {})
    const heard = listen(task, plan)
    const words = speak(task)
    if (plan.more && !plan.more.isLate) await task.send('more', { params: json(plan.more.params) })
    if (plan.isCanceled) await task.cancel('enough')
    let result = await task.result().catch((error: unknown) => error)
    if (plan.more?.isLate) {
      await task.send('more', { params: json(plan.more.params) })
      result = await task.result().catch((error: unknown) => error)
    }
    const [events, said] = await Promise.all([heard, words])
    const shown = view.current
    leave()
    total.repairs += task.repairs

    const rows = await platform.client.messages(task.id)
    const log = (await platform.log(task.id)).map(({ cursor, event }) => ({ ...event, cursor }))
    const { turns } = await platform.client.detail(task.id)
    const stored = textOf(rows.filter(row => row.turn === turns.length))
    const found = await platform.client.get<{ data: unknown[] }>(`/v1/tasks?metadata.run=r${seed}`)
    return [
      ...(await faultsOf(platform, task.id)),
      ...differing('the view', shown.messages, rows),
      ...differing('the events', events.filter(isLogged), log),
      ...differing('the tasks created', found.body.data.length, 1),
      ...differing('the turns', turns.length, plan.more ? 2 : 1),
      ...differing('the repairs', task.repairs, 0),
      ...differing('the connection', [shown.connection, shown.error], ['ended', null]),
      ...(plan.isCanceled
        ? differing('the error', result instanceof RivuletError ? result.code : result, shown.status === 'canceled' ? 'canceled' : result)
        : differing('the result', textIn(result), stored)),
      ...(plan.isPlain ? differing('the words', said, stored) : []),
    ]
  }
}

/** Before the first event, soon, or after more than any snapshot here has: one that never gets through would never be told. */
function breakingPoint(chance: number): number {
  if (chance < 0.1) return Math.floor(chance * 6_000)
  return Math.floor(chance < 0.75 ? 1_200 + (chance - 0.1) * 10_000 : 20_000 + (chance - 0.75) * 100_000)
}

/** Every event of the task, until its last turn has ended. */
async function listen(task: TaskHandle, { more }: Plan): Promise<TaskEvent[]> {
  const events: TaskEvent[] = []
  // The second input may come when the first turn has just ended, and with it the stream of a viewer that does not follow.
  for await (const event of task.events({ follow: more !== null })) {
    events.push(event)
    if (more && event.type === 'turn.finished' && event.turn === 2) break
  }
  return events
}

async function speak(task: TaskHandle): Promise<string> {
  let said = ''
  try {
    for await (const words of task.text()) said += words
  } catch (error) {
    if (!(error instanceof RivuletError) || error.code !== 'canceled') throw error
  }
  return said
}

function planOf(random: () => number): Plan {
  const kind = random()
  const more = kind < 0.4 ? { params: scriptOf(random).params, isLate: kind < 0.2 } : null
  const isCanceled = kind > 0.9
  const isRetried = random() < 0.08
  const { params, hasOverride } = scriptOf(random)
  const failing = { attempts: { 1: [...params.steps.slice(0, -1), fail('once')], 2: params.steps } }
  return { params: isRetried ? failing : params, more, isCanceled, isPlain: !more && !isCanceled && !isRetried && !hasOverride }
}

/** Text, reasoning, a call and data, in any order, some of it replaced as a whole. */
function scriptOf(random: () => number): { params: { steps: Step[] }; hasOverride: boolean } {
  const steps: Step[] = []
  const count = 1 + pick(3)
  let hasOverride = false
  for (let index = 0; index < count; index += 1) {
    const kind = random()
    const times = 3 + pick(15)
    if (kind < 0.15) {
      steps.push(start(index, { type: 'tool_request', callId: 'c', name: 'search', arguments: {} }))
      for (const text of ['{"q":', '"wörd 🌊', '"', '}']) steps.push(extend(index, { type: 'tool_request', text }), rest(pick(8)))
    } else {
      for (let i = 0; i < times; i += 1) {
        const text = `${i} wörd\n🌊 ${'.'.repeat(pick(20))}`
        steps.push(kind < 0.3 ? extend(index, { type: 'reasoning_content', index: pick(2), text }) : say(index, text), rest(pick(10)))
      }
      if (kind > 0.85) {
        hasOverride = true
        steps.push(full(index, { type: 'text', text: `instead ${pick(99)}`, format: 'markdown' }))
      }
    }
  }
  return { params: { steps: [...steps, rest(1)] }, hasOverride }

  function pick(below: number): number {
    return Math.floor(random() * below)
  }
}

function textIn(result: unknown): unknown {
  return typeof result === 'object' && result !== null && 'text' in result ? result.text : result
}

function differing(what: string, held: unknown, expected: unknown): string[] {
  if (isDeepStrictEqual(held, expected)) return []
  if (Array.isArray(held) && Array.isArray(expected) && held.length + expected.length > 2) {
    const place = held.findIndex((item, at) => !isDeepStrictEqual(item, expected[at]))
    const at = place === -1 ? held.length : place
    return differing(`${what}, ${held.length} instead of ${expected.length}, at ${at}`, held[at], expected[at])
  }
  const brief = (value: unknown) => (value instanceof Error ? String(value.stack) : (JSON.stringify(value) ?? 'nothing')).slice(0, 1_500)
  return [`${what}: ${brief(held)}\nwhere there is ${brief(expected)}`]
}

/** Scripts are JSON. */
function json(params: object): Json {
  return params as Json
}
