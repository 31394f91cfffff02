/** The programs of docs/sdks.md are whole: each type-checks with its SDK and runs, with keys, its agents with a model on this machine. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@rivulet/client'
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import type { UIMessage } from 'ai'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { typeErrorsIn } from '../support/texts/type-errors.ts'
import { until } from '../support/until.ts'
import { openModelServer, type Reply } from './model-server.ts'
import { printedBy } from './printed.ts'
import { ShownPrograms } from './shown-programs.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const keys = { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY }
const page = new ShownPrograms('sdks.md')
const python = fileURLToPath(new URL('.venv/bin/python', import.meta.url))
const hasPythonSdk = existsSync(fileURLToPath(new URL('.venv/installed', import.meta.url)))

/** Says which turn of its task it is. */
const assistant = defineAgent('assistant', async turn => void (await turn.send(`Turn ${turn.number}: ${turn.text} `)))

test('every program of docs/sdks.md is whole and type-checks', () => {
  const { programs } = page
  expect(programs.length).toBeGreaterThan(10)
  expect(programs.filter(({ text }) => !text.startsWith('import '))).toEqual([])
  expect(typeErrorsIn(programs, 'test/sdks')).toBe('')
})

describe('a program of docs/sdks.md', () => {
  let platform: Platform
  let model: Awaited<ReturnType<typeof openModelServer>>

  beforeAll(async () => {
    model = await openModelServer(replyTo)
    const variables = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'none', OPENAI_AGENTS_DISABLE_TRACING: '1' }
    for (const [name, value] of Object.entries({ ...variables, RIVULET_KEY: env.RIVULET_KEY })) vi.stubEnv(name, value)
    platform = await startPlatform({ apis: 1, workers: 0, env })
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await platform?.close()
    model?.close()
    page.close()
  })

  test.each([
    ['with the AI SDK', 'toModelMessages('],
    ['with the OpenAI Agents SDK', 'tellTurn('],
    ['with the OpenAI Agents SDK, as a generator', 'fromOpenAiAgents('],
    ['with LangGraph', 'fromLangGraph('],
  ])('is an agent %s', async (_, mark) => {
    const agent = await startShown(mark)
    const { text } = await client().run({ agent: agent.name, input: 'What is new?' })
    expect(text).toBe('Much is new.')
  })

  test.each([
    ['with the AI SDK', 'streamWithApprovals('],
    ['with the OpenAI Agents SDK', 'runWithApprovals<'],
  ])('is an agent that asks before it pays, %s', async (_, mark) => {
    const agent = await startShown(mark)
    const task = await client().tasks.create({ agent: agent.name, input: 'Pay 5' })
    const wait = await until('the agent asks', async () => (await task.waits())[0])
    expect(wait).toMatchObject({ title: 'Run pay?', arguments: { amount: 5 }, assignee: 'finance' })
    await task.answer(wait.id, { action: 'accept' })
    const { text } = await task.result()
    expect(text).toContain('Done.')
  })

  test('reads the messages of a chat for a page that reloads', async () => {
    await startOwnWorker(platform, [assistant], keys)
    const name = crypto.randomUUID()
    for (const input of ['One', 'Two']) await client().run({ agent: 'assistant', name, input })
    const { messagesOf } = (await page.load('messagesOf(', platform.url)) as { messagesOf: (id: string) => Promise<UIMessage[]> }
    expect((await messagesOf(name)).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(await messagesOf('a chat that does not exist')).toEqual([])
  })

  test('reads a task in the events of another model', async () => {
    await startOwnWorker(platform, [assistant], keys)
    expect(await printedBy(() => page.load('task.chunks(', platform.url))).toMatch(/assistant_text_delta[\s\S]*Turn 1: What is new\?/)
  })

  test.each([
    ['the AI SDK', "rivulet('assistant')"],
    ['LangChain', "new ChatOpenAI({ model: 'assistant'"],
  ])('calls an agent with %s', async (_, mark) => {
    await page.loadPackages(mark)
    await startOwnWorker(platform, [assistant], keys)
    expect(await printedBy(() => page.load(mark, platform.url))).toBe('Turn 1: What is new? ')
  })

  test.skipIf(!hasPythonSdk)('calls an agent with OpenAI for Python (skipped where pip cannot install it)', async () => {
    await startOwnWorker(platform, [assistant], keys)
    expect(await runPython(page.textWith('import OpenAI\n'), platform.url)).toBe('Turn 1: What is new? Turn 2: And then? ')
  })

  describe('whose first response is lost', () => {
    test('repeats the request under its key, and has one turn, with the AI SDK', async () => {
      const proxy = await loseFirstResponse()
      const text = await startNamed('ai-sdk', "rivulet('assistant')")
      expect(await printedBy(() => page.run(text, proxy.url))).toBe('Turn 1: What is new? ')
      expect([proxy.requests(), await tasksOf('ai-sdk')]).toEqual([2, 1])
    })

    test('fails without a repetition, with LangChain', async () => {
      const proxy = await loseFirstResponse()
      const text = await startNamed('langchain', "new ChatOpenAI({ model: 'assistant'")
      await expect(printedBy(() => page.run(text, proxy.url))).rejects.toThrow('Connection error')
      expect([proxy.requests(), await tasksOf('langchain')]).toEqual([1, 1])
    })

    test.skipIf(!hasPythonSdk)('repeats the request under its key, and has one turn, with OpenAI for Python', async () => {
      const proxy = await loseFirstResponse()
      const text = await startNamed('python', 'import OpenAI\n')
      expect(await runPython(text, proxy.url)).toBe('Turn 1: What is new? Turn 2: And then? ')
      expect([proxy.requests(), await tasksOf('python')]).toEqual([3, 1])
    })

    /** Starts the assistant under another name; returns the program that calls it. */
    async function startNamed(name: string, mark: string): Promise<string> {
      await startOwnWorker(platform, [{ ...assistant, name }], keys)
      return page.textWith(mark).replace(/(?<=['"])assistant(?=['"])/, name)
    }

    async function tasksOf(agent: string): Promise<number> {
      return (await client().tasks.list({ agent })).data.length
    }
  })

  async function startShown(mark: string): Promise<AgentDefinition> {
    const { default: agent } = (await page.load(mark, platform.url)) as { default: AgentDefinition }
    await startOwnWorker(platform, [agent], keys)
    return agent
  }

  function client() {
    return createClient({ url: platform.url, key: env.RIVULET_KEY })
  }

  async function runPython(text: string, url: string): Promise<string> {
    return (await promisify(execFile)(python, ['-c', text.replaceAll('http://127.0.0.1:4000', url)])).stdout
  }

  /** A proxy that breaks the connection of the first request once the API has responded to it. */
  async function loseFirstResponse(): Promise<{ url: string; requests: () => number }> {
    let requests = 0
    const server = createServer(async (request, response) => {
      requests += 1
      const isFirst = requests === 1
      let body = ''
      for await (const chunk of request) body += chunk
      const { host: _, ...headers } = request.headers as Record<string, string>
      const upstream = await fetch(`${platform.url}${request.url}`, { method: 'POST', headers, body })
      const reply = await upstream.text()
      if (isFirst) return void response.destroy()
      response.writeHead(upstream.status, { 'content-type': upstream.headers.get('content-type') ?? '' }).end(reply)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests }
  }
})

/** Calls the tool once, if the agent has one. */
function replyTo(request: Record<string, unknown>): Reply {
  const { tools, input, messages } = request
  if (!Array.isArray(tools) || tools.length === 0) return { say: ['Much is ', 'new.'] }
  const hasResult = /"function_call_output"|"role":"tool"/.test(JSON.stringify(input ?? messages))
  return hasResult ? { say: ['Done.'] } : { call: { id: 'c1', name: 'pay', arguments: ['{"amount":', '5}'] } }
}
