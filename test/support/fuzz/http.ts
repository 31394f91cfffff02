/**
 * Sends requests at random to a running API and looks at every answer: no 5xx, the one shape of an error, nothing of what was sent in it.
 * Faults come back as sentences, each with the request that made it.
 */
import { createClient, type RivuletClient } from '@rivulet/client'
import { shapeFaults } from '../texts/error-shape.ts'
import { type RawReply, rawRequest, sendRaw } from '../viewers/raw-http.ts'
import { type FuzzedRequest, type Keys, keyPlaceholders, type OpenApi, placeholders, requestsTo } from './requests.ts'
import { sampledInTurns } from './seed.ts'
import { marker } from './spoiling.ts'

/** Requests that are under way at a time. */
const width = 6
/** An answer that takes longer is one that hangs. */
const patienceMs = 120_000

type Fuzzed = {
  requests: number
  /** How many responses there were of each status. */
  statuses: Record<number, number>
  /** The statuses of each route. */
  routes: Map<string, Set<number>>
  faults: string[]
}

export async function fuzzHttp(url: string, keys: Keys, count: number): Promise<Fuzzed> {
  return tryRequests(url, keys, sampledInTurns(requestsTo(await descriptionOf(url), keys), count), 120)
}

export async function descriptionOf(url: string): Promise<OpenApi> {
  return (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi
}

/** @param chunk after how many there are new tasks to ask for */
export async function tryRequests(url: string, keys: Keys, requests: readonly FuzzedRequest[], chunk: number): Promise<Fuzzed> {
  const client = createClient({ url, key: keys.client })
  const statuses: Record<number, number> = {}
  const routes = new Map<string, Set<number>>()
  const faults: string[] = []
  for (let at = 0; at < requests.length; at += chunk) {
    await freeAgents(url, keys, client)
    const ids = await somethingToAskFor(client)
    const waiting = requests.slice(at, at + chunk)
    await Promise.all(
      Array.from({ length: width }, async () => {
        for (let next = waiting.shift(); next; next = waiting.shift()) await send(next, ids)
      }),
    )
    const { status } = await fetch(`${url}/healthz`)
    if (status !== 200) faults.push(`/healthz answered ${status}`)
  }
  await freeAgents(url, keys, client)
  return { requests: requests.length, statuses, routes, faults }

  async function send(request: FuzzedRequest, ids: ReadonlyMap<string, string>): Promise<void> {
    const pieces = request.pieces.map(piece => withIds(piece, ids))
    const told = (what: string) => faults.push(`${what}\n${Buffer.concat(pieces).toString('latin1').slice(0, 3_000)}`)
    try {
      const options = { replies: request.count, leavesAtOnce: request.isCut, timeoutMs: patienceMs }
      const { replies } = await sendRaw(url, pieces, options)
      if (replies.length === 0 && !request.isCut) told('There was no answer')
      for (const reply of replies) {
        statuses[reply.status] = (statuses[reply.status] ?? 0) + 1
        routes.set(request.route, (routes.get(request.route) ?? new Set()).add(reply.status))
        for (const fault of faultsOf(reply, request.isHead)) told(fault)
      }
    } catch (error) {
      told(String(error))
    }
  }
}

function faultsOf(reply: RawReply, isHead: boolean): string[] {
  const { status, headers, body } = reply
  const described = `${status} ${body.slice(0, 1_000)}`
  if (status < 400) return status < 200 ? [`It was answered ${described}`] : []
  return [
    ...(status >= 500 ? [`It was answered ${described}`] : []),
    ...(isHead ? [] : shapeFaults(reply).map(fault => `${fault}: ${described}`)),
    ...((JSON.stringify(headers) + body).toLowerCase().includes(marker) ? [`It is echoed: ${JSON.stringify(headers)} ${body}`] : []),
  ]
}

function withIds(piece: Buffer, ids: ReadonlyMap<string, string>): Buffer {
  const text = piece.toString('latin1')
  return [...placeholders, ...keyPlaceholders].some(id => text.includes(id))
    ? Buffer.from(
        text.replaceAll(/0{8}-0{4}-7000-8000-0{11}\d|feed0{11}\d/g, id => ids.get(id) ?? id),
        'latin1',
      )
    : piece
}

/** Requests may have removed, paused or limited the agents that others need. */
async function freeAgents(url: string, keys: Keys, client: RivuletClient): Promise<void> {
  await askAsWorker(url, keys, 'hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  for (const agent of ['idle', 'echo']) {
    await client.agents.resume(agent)
    await client.limits.remove(agent)
  }
}

/** On a connection of its own, because the API may be closing one that was kept while the requests took long. */
export async function askAsWorker<T>(url: string, keys: Keys, call: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${keys.worker}` }
  const { replies } = await sendRaw(url, [rawRequest(`POST /internal/${call}`, { headers, body: JSON.stringify(body) })])
  return JSON.parse(replies[0]?.body || 'null') as T
}

/** Tasks that wait, tasks that have ended, their turns, and keys: what is removed by one chunk is there again for the next. */
async function somethingToAskFor(client: RivuletClient): Promise<ReadonlyMap<string, string>> {
  const tasks = await Promise.all(
    [0, 1, 2, 3].map(async i => {
      const task = await client.tasks.create({ agent: i < 3 ? 'idle' : 'echo', input: 'fuzz' })
      if (i === 3) await task.result()
      const [turn] = (await task.detail()).turns
      return [task.id, turn?.id ?? task.id]
    }),
  )
  const keys = await Promise.all(keyPlaceholders.map(async placeholder => [placeholder, (await client.keys.create()).key.id] as const))
  return new Map([...placeholders.map((placeholder, i) => [placeholder, tasks.flat()[i] ?? placeholder] as const), ...keys])
}
