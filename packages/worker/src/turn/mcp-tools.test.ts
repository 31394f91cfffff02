/** Tools of an MCP server in a turn: what they ask for is a wait, and no round that was over is repeated. */
import { call, mcpTools, scriptedModel } from '@rivulet/agent'
import type { Json, JsonObject } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { defineAgent } from '../define-agent.ts'
import { testTurn } from '../testing/test-turn.ts'

const requestedSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^A' },
    size: {
      type: 'string',
      oneOf: [
        { const: 's', title: 'Small' },
        { const: 'l', title: 'Large' },
      ],
    },
    tags: { type: 'array', items: { anyOf: [{ const: 'x', title: 'X' }] } },
  },
  required: ['name'],
}
const form = { method: 'elicitation/create', params: { mode: 'form', message: 'Who are you?', requestedSchema } }
const link = { method: 'elicitation/create', params: { mode: 'url', message: 'Sign in', url: 'https://sign.in' } }

test('a call that asks becomes waits, and is made again with the responses', async () => {
  const { calls, agent } = agentWith(({ inputResponses, requestState, arguments: args }) =>
    inputResponses
      ? { content: [{ type: 'text', text: JSON.stringify([args ?? null, inputResponses, requestState ?? null]) }] }
      : { resultType: 'input_required', inputRequests: { who: form, sign: link }, requestState: 's1' },
  )
  const { waits, messages, status } = await testTurn(agent, {
    attempts: 2,
    answer: ({ kind }) => (kind === 'form' ? { action: 'accept', content: { name: 'Ada' } } : { action: 'decline' }),
  })
  expect(status).toBe('completed')
  expect(waits).toMatchObject([
    { kind: 'form', title: 'Who are you?', tool: 'register', name: 'run 1/tool 1.1 round 1.1' },
    { kind: 'approval', title: 'Sign in', detail: 'https://sign.in' },
  ])
  expect(waits[0]?.schema).toMatchObject({
    properties: { name: { type: 'string' }, size: { enum: ['s', 'l'] }, tags: { items: { enum: ['x'] } } },
    required: ['name'],
  })
  const responses = { who: { action: 'accept', content: { name: 'Ada' } }, sign: { action: 'decline' } }
  expect(JSON.parse(resultIn(messages))).toEqual([{ a: 1 }, responses, 's1'])
  // The second attempt has repeated neither round.
  expect(calls.filter(method => method === 'tools/call')).toHaveLength(2)
})

test('a task is polled, asks, and gets the answer', async () => {
  let isAnswered = false
  let polls = 0
  const { calls, agent } = agentWith(
    () => ({ resultType: 'task', taskId: 't1', status: 'working' }),
    (method, params) => {
      if (method === 'tasks/update') {
        isAnswered = true
        expect(params).toMatchObject({ taskId: 't1', inputResponses: { who: { action: 'accept', content: { name: 'Ada' } } } })
        return {}
      }
      polls += 1
      if (polls === 1) return { status: 'working', pollIntervalMs: 1 }
      if (!isAnswered || polls === 4) return { status: 'input_required', inputRequests: { who: form }, pollIntervalMs: 1 }
      return { status: 'completed', result: { content: [{ type: 'text', text: 'registered' }] } }
    },
  )
  const { messages, waits } = await testTurn(agent, { attempts: 2, answer: () => ({ action: 'accept', content: { name: 'Ada' } }) })
  expect(resultIn(messages)).toBe('registered')
  expect(waits).toHaveLength(1)
  expect(calls.filter(method => method === 'tools/call')).toHaveLength(1)
})

/** The agent fails once after its run, so that another attempt plays it again. */
function agentWith(onCall: (params: JsonObject) => object, onTask: (method: string, params: JsonObject) => object = () => ({})) {
  const calls: string[] = []
  const agent = defineAgent('caller', async turn => {
    const tools = await mcpTools('http://mcp.test', { fetch: serve as typeof fetch })
    await turn.run({ model: scriptedModel([[call('register', { a: 1 })], 'Done.']), tools })
    if (turn.attempt === 1) throw new Error('again')
  })
  return { calls, agent }

  async function serve(_: unknown, init: RequestInit = {}): Promise<Response> {
    const { id, method, params } = JSON.parse(String(init.body)) as { id: Json; method: string; params: JsonObject }
    calls.push(method)
    return Response.json({ jsonrpc: '2.0', id, result: resultOf(method, params) })
  }

  function resultOf(method: string, params: JsonObject): object {
    if (method === 'server/discover') return { supportedVersions: ['2026-07-28'] }
    if (method === 'tools/list') return { tools: [{ name: 'register', inputSchema: { type: 'object' } }] }
    return method === 'tools/call' ? onCall(params) : onTask(method, params)
  }
}

function resultIn(messages: Awaited<ReturnType<typeof testTurn>>['messages']): string {
  const [response] = messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
  return String(response?.content)
}
