/** LangGraph's JavaScript server: it executes runs in its own process, with resumable streams in memory. */
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pLimit from 'p-limit'
import { freePort } from '../../test/support/free-port.ts'
import { until } from '../../test/support/until.ts'
import { type Child, startChild } from '../child.ts'
import type { Absent, Contestant, Start, World } from '../contestant.ts'
import { requestFor } from '../crowd.ts'
import type { Plan } from '../measure/speech.ts'

export const langgraph: Start = { name: 'LangGraph JS server', start }

const patience = { timeoutMs: 300_000, intervalMs: 20 }
const concurrentRuns = 200

async function start({ folder }: World): Promise<Contestant | Absent> {
  const cwd = join(folder, 'langgraph')
  mkdirSync(cwd)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  // Without these it would contact LangSmith.
  const env = { LANGSMITH_TRACING: 'false', LANGCHAIN_TRACING_V2: 'false', LANGGRAPH_CLI_NO_ANALYTICS: '1', LOG_LEVEL: 'error' }
  let server: Child
  try {
    server = await startChild('peers/langgraph-server.ts', { args: [cwd, port, String(concurrentRuns)], env })
  } catch (error) {
    return { name: langgraph.name, because: `it does not start: ${error instanceof Error ? error.message.slice(-300) : error}` }
  }
  return {
    name: langgraph.name,
    isSlow: true,
    mostTasks: concurrentRuns,
    pids: { server: () => [server.pid] },
    prepare,
    runWhole,
    close: server.stop,
  }

  async function prepare(plan: Plan) {
    const run = randomUUID()
    const paths = await Promise.all(Array.from({ length: plan.tasks }, (_, task) => createRun({ plan, task, run })))
    await until('every run has begun', async () => (await server.ask<number>('waiting', run)) === plan.tasks, patience)
    return {
      requests: paths.map(path => requestFor(url, path, { 'last-event-id': '-1' })),
      async speak() {
        await server.ask('speak', run)
        await until('every delta is sent', async () => (await server.ask<number>('sentAll', run)) === plan.tasks, patience)
      },
      async clear() {
        await server.ask('speak', run)
        await server.ask('end', run)
      },
    }
  }

  async function runWhole(plan: Plan): Promise<void> {
    const run = randomUUID()
    for (const gate of ['speak', 'end']) await server.ask(gate, run)
    const few = pLimit(50)
    const paths = await Promise.all(Array.from({ length: plan.tasks }, (_, task) => few(() => createRun({ plan, task, run }))))
    // Its reply is the final state of the thread.
    await Promise.all(paths.map(path => few(() => request('GET', path.replace(/stream$/, 'join')))))
  }

  async function createRun(input: { plan: Plan; task: number; run: string }): Promise<string> {
    const thread = await request<{ thread_id: string }>('POST', '/threads', {})
    const runRequest = { assistant_id: 'speaker', input, stream_mode: ['custom'], stream_resumable: true }
    const made = await request<{ run_id: string }>('POST', `/threads/${thread.thread_id}/runs`, runRequest)
    return `/threads/${thread.thread_id}/runs/${made.run_id}/stream`
  }

  async function request<Body>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Body> {
    const init = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(url + path, { method, ...init })
    if (!response.ok) throw new Error(`${method} ${path} returned ${response.status} ${await response.text()}`)
    return (await response.json()) as Body
  }
}
