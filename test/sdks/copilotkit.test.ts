/** CopilotKit's runtime, unmodified, between a page and the agents of Rivulet: it streams runs, and passes on what a turn asks for and the answer. */
import { type BaseEvent, HttpAgent } from '@ag-ui/client'
import { CopilotRuntime, createCopilotRuntimeHandler } from '@copilotkit/runtime/v2'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { extend, rest, say } from '../support/agents/scripts.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { dataInStream } from '../support/viewers/stream-text.ts'
import { paid, payerOf } from './asking-agents.ts'

// Before the runtime is loaded: no test calls anything outside this machine.
vi.hoisted(() => {
  process.env.COPILOTKIT_TELEMETRY_DISABLED = 'true'
})

let platform: Platform
let handle: (request: Request) => Promise<Response>

beforeAll(async () => {
  platform = await startPlatform({ apis: 1, workers: 1 })
  const agentOf = (name: string) => new HttpAgent({ url: `${platform.url}/ag-ui/${name}` })
  const agents = { scripted: agentOf('scripted'), payer: agentOf('payer') }
  handle = createCopilotRuntimeHandler({ runtime: new CopilotRuntime({ agents: agents as never }), basePath: '/api/copilotkit' })
})
afterAll(() => platform.close())

test('a run streams reasoning, text and the end, and a page that connects gets it again', async () => {
  const steps = [extend(0, { type: 'reasoning_content', index: 0, text: 'Hm.' }), say(1, 'Hello '), rest(20), say(1, 'world')]
  const run = { threadId: 'ck-1', messages: [{ id: 'u1', role: 'user', content: 'go' }], forwardedProps: { steps } }
  const events = await post('scripted/run', run)
  expect([events[0]?.type, events.at(-1)]).toMatchObject(['RUN_STARTED', { type: 'RUN_FINISHED', outcome: { type: 'success' } }])
  expect([textOf(events), events.some(({ type }) => type === 'REASONING_MESSAGE_CONTENT')]).toEqual(['Hello world', true])
  expect(textOf(await post('scripted/connect', { threadId: 'ck-1', messages: [] }))).toBe('Hello world')
})

test('a turn that asks interrupts the run, and the answer continues it', async () => {
  await startOwnWorker(platform, [payerOf(7)])
  const run = { threadId: 'ck-2', messages: [{ id: 'u1', role: 'user', content: 'go' }] }
  const asked = (await post('payer/run', run)).at(-1) as BaseEvent & { outcome: { interrupts: { id: string; reason: string }[] } }
  const [interrupt] = asked.outcome.interrupts
  expect([interrupt?.reason, paid]).toEqual(['tool_call', []])
  const resume = [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }]
  expect(textOf(await post('payer/run', { ...run, resume }))).toBe('Done.')
  expect(paid).toEqual([7])
})

/** As CopilotKit's page sends it. */
async function post(path: string, given: object): Promise<BaseEvent[]> {
  const body = { runId: crypto.randomUUID(), tools: [], context: [], state: {}, forwardedProps: {}, ...given }
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' }
  const address = `http://page/api/copilotkit/agent/${path}`
  const response = await handle(new Request(address, { method: 'POST', headers, body: JSON.stringify(body) }))
  expect(response.status).toBe(200)
  return dataInStream(await response.text())
}

function textOf(events: readonly BaseEvent[]): string {
  return events.flatMap(event => (event.type === 'TEXT_MESSAGE_CONTENT' ? [String(event.delta)] : [])).join('')
}
