/**
 * `npm start` as a newcomer runs it, and three clients that know nothing of Rivulet: each streams the agent of the quick start, goes on after a kill -9 of the
 * API, fills in a form and approves a tool.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HttpAgent } from '@ag-ui/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { RivuletAgent } from '@rivulet/client/ag-ui'
import OpenAI from 'openai'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type RunningCommand, startCommand } from '../support/process/running-command.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { until } from '../support/until.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-npm-start-'))
mkdirSync(`${root}.rivulet`, { recursive: true })
/** Inside the checkout, where a file of the reader's would be: it finds the packages from there. */
const folder = mkdtempSync(`${root}.rivulet/npm-start-`)
const speech = 'Hello, Ada! I speak slowly, so that you can leave in the middle and come back for the rest. '
const refund = { number: 'A-1', amount: 12 }
const refunded = 'Refunded 12.00 € for order A-1.'

let url = ''
let npmStart: RunningCommand
let worker: RunningCommand

beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const [program] = blocksOf(readFileSync(`${root}docs/quick-start.md`, 'utf8')).filter(({ language }) => language === 'ts')
  writeFileSync(join(folder, 'hello.ts'), program?.text ?? '')
  const engines = { DATA_DIR: dataDir, REDIS_URL: '', DATABASE_URL: '' }
  npmStart = startCommand('npm start', { ...engines, PORT: port })
  await npmStart.says('Rivulet is ready')
  worker = startCommand('npx rivulet worker hello.ts', { ...engines, RIVULET_URL: '' }, folder)
  await worker.says('worker is ready')
})

afterAll(async () => {
  await worker?.interrupt()
  await npmStart?.interrupt()
  for (const made of [dataDir, folder]) rmSync(made, { recursive: true, force: true })
})

describe('the client of OpenAI', () => {
  const client = () => new OpenAI({ baseURL: `${url}/openai/v1`, apiKey: 'none' })

  test('streams, and goes on behind the last event that it has', async () => {
    const events: ResponseStreamEvent[] = []
    const stream = await client().responses.create({ model: 'hello', input: 'Ada', stream: true })
    const broken = (async () => {
      for await (const event of stream) {
        events.push(event)
        if (textOf(events).split(' ').length === 5) killApi()
      }
    })()
    await expect(broken).rejects.toThrow()
    expect(textOf(events)).not.toBe(speech)
    const [first] = events
    const id = first?.type === 'response.created' ? first.response.id : ''
    await apiIsBack()
    const rest = await client().responses.retrieve(id, { stream: true, starting_after: events.at(-1)?.sequence_number ?? 0 })
    for await (const event of rest) events.push(event)
    expect([textOf(events), events.at(-1)?.type]).toEqual([speech, 'response.completed'])
    expect((await client().responses.retrieve(id)).output_text).toBe(speech)
  })

  test('fills in a form and approves a tool', async () => {
    const form = await client().responses.create({ model: 'clerk', input: 'Money back, please' })
    const answer = { type: 'function_call_output' as const, call_id: itemOf(form, 'function_call').call_id, output: JSON.stringify(refund) }
    const asked = await client().responses.create({ model: 'clerk', previous_response_id: form.id, input: [answer] })
    const request = itemOf(asked, 'mcp_approval_request')
    expect([request.name, JSON.parse(request.arguments)]).toEqual(['refund', refund])
    const approval = { type: 'mcp_approval_response' as const, approval_request_id: request.id, approve: true }
    const done = await client().responses.create({ model: 'clerk', previous_response_id: asked.id, input: [approval] })
    expect(done.output_text).toBe(refunded)
  })
})

describe('the client of AG-UI', () => {
  test('streams, and the thread goes on for an agent that connects', async () => {
    const agent = new RivuletAgent({ url: `${url}/ag-ui/hello` })
    agent.addMessage({ id: 'u1', role: 'user', content: 'Ada' })
    const broken = agent.runAgent()
    await until('it speaks', () => String(agent.messages.at(-1)?.content).split(' ').length > 4)
    killApi()
    await expect(broken).rejects.toThrow()
    await apiIsBack()
    await agent.connectAgent()
    expect(agent.messages.map(({ content }) => content)).toEqual(['Ada', speech])
  })

  test('fills in a form and approves a tool', async () => {
    const agent = new HttpAgent({ url: `${url}/ag-ui/clerk` })
    agent.addMessage({ id: 'u1', role: 'user', content: 'Money back, please' })
    await agent.runAgent()
    for (const payload of [refund, { approved: true }]) {
      const [interrupt] = agent.pendingInterrupts
      await agent.runAgent({ resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload }] })
    }
    expect([agent.messages.at(-1)?.content, agent.pendingInterrupts]).toEqual([refunded, []])
  })
})

describe('the client of MCP', () => {
  test('gets the result of its call by calling again', async () => {
    const call = { name: 'hello', arguments: { message: 'Ada' } }
    const broken = (await connect()).callTool(call)
    await until('it runs', async () => (await tasksOf('hello', 'running')).length === 1)
    killApi()
    await expect(broken).rejects.toThrow()
    await apiIsBack()
    const before = await tasksOf('hello')
    const result = await (await connect()).callTool(call)
    expect(result.content).toEqual([{ type: 'text', text: speech }])
    expect(await tasksOf('hello')).toHaveLength(before.length)
  })

  test('fills in a form and approves a tool', async () => {
    const client = await connect('refund')
    const asked: string[] = []
    client.setRequestHandler('elicitation/create', async ({ params: { message } }) => {
      asked.push(message)
      return { action: 'accept', content: asked.length === 1 ? refund : {} }
    })
    const { content } = await client.callTool({ name: 'clerk', arguments: { message: 'Money back, please' } })
    expect(asked).toEqual(['Order to refund', expect.stringContaining('Refund 12.00 €')])
    expect(content).toMatchObject([{ type: 'text' }, { text: refunded }])
  })

  /** The same key makes the same call of two. */
  async function connect(key = 'greeting'): Promise<Client> {
    const capabilities = { elicitation: {} }
    const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode: 'auto' } })
    const requestInit = { headers: { 'idempotency-key': key } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
    return client
  }
})

/** That of the platform of this test alone: its parent has written its own id into the data folder. */
function killApi(): void {
  const { pid } = JSON.parse(readFileSync(join(dataDir, 'running.json'), 'utf8')) as { pid: number }
  const lines = execFileSync('ps', ['-Aww', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' }).trim().split('\n')
  const api = lines.flatMap(line => {
    const [, child, parent, command = ''] = /^\s*(\d+)\s+(\d+) (.*)$/.exec(line) ?? []
    return Number(parent) === pid && command.includes('api.mjs') ? [Number(child)] : []
  })
  expect(api).toHaveLength(1)
  process.kill(api[0] ?? 0, 'SIGKILL')
}

async function apiIsBack(): Promise<void> {
  await until('the API is back', async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok)
}

async function tasksOf(agent: string, status = ''): Promise<object[]> {
  const response = await fetch(`${url}/v1/tasks?agent=${agent}${status && `&status=${status}`}`)
  return ((await response.json()) as { data: object[] }).data
}

function textOf(events: readonly ResponseStreamEvent[]): string {
  return events.flatMap(event => (event.type === 'response.output_text.delta' ? [event.delta] : [])).join('')
}

function itemOf<T extends Response['output'][number]['type']>({ output }: Response, type: T) {
  const found = output.find((item): item is Extract<Response['output'][number], { type: T }> => item.type === type)
  if (!found) throw new Error(`There is no ${type} in ${JSON.stringify(output)}`)
  return found
}
