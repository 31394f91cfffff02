import type { Json, JsonObject } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { runAgent } from '../loop/run-agent.ts'
import { user } from '../model/conversation.ts'
import { call } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { mcpTools } from './mcp-tools.ts'

const url = 'http://mcp.test/mcp'
const discovered = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }
const add = { name: 'add', description: 'Adds', inputSchema: { type: 'object', properties: { a: { type: 'number' } } } }

type Seen = { method: string; params: JsonObject; headers: Headers }
type Handler = (seen: Seen, id: Json) => Response | object

describe('the tools of a server', () => {
  test('are listed page by page, chosen, and named as providers accept it', async () => {
    const pages: Record<string, object> = {
      '': { tools: [add, { name: 'deep/look', inputSchema: { type: 'object' } }, { name: 'no schema' }], nextCursor: 'more' },
      more: { tools: [{ name: 'last', title: 'The last', inputSchema: { type: 'object' } }] },
    }
    const server = serve(({ method, params }) => (method === 'tools/list' ? (pages[String(params.cursor ?? '')] ?? {}) : discovered))
    const tools = await mcpTools(url, { fetch: server.fetch, prefix: 'calc.' })
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ['calc.add', 'Adds'],
      ['calc.deep_look', 'deep/look'],
      ['calc.last', 'The last'],
    ])
    expect(tools[0]?.parameters).toEqual(add.inputSchema)
    expect((await mcpTools(url, { fetch: server.fetch, only: ['last'] })).map(({ name }) => name)).toEqual(['last'])
  })

  test('are called with the version, the method and the name in headers, and with the headers of the caller', async () => {
    const server = serve(({ method }) =>
      method === 'tools/call'
        ? {
            content: [
              { type: 'text', text: '3' },
              { type: 'image', mimeType: 'image/png', data: 'AA' },
            ],
          }
        : modern(method),
    )
    expect(await responsesOf(server.fetch, { authorization: 'Bearer k' })).toEqual([['3\n[image/png]', false]])
    const called = server.seen.at(-1)
    expect(called?.params).toMatchObject({ name: 'add', arguments: { a: 1 }, _meta: { 'io.modelcontextprotocol/clientCapabilities': {} } })
    const sent = ['mcp-protocol-version', 'mcp-method', 'mcp-name', 'authorization'].map(name => called?.headers.get(name))
    expect(sent).toEqual(['2026-07-28', 'tools/call', 'add', 'Bearer k'])
  })

  test.each<[string, Handler, string]>([
    ['fails', () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }), 'no luck'],
    ['is refused', (_, id) => Response.json({ jsonrpc: '2.0', id, error: { code: -32602, message: 'bad a' } }), 'bad a (-32602)'],
    ['gets an HTTP error', () => new Response('<html>', { status: 502 }), 'The MCP server returned 502'],
    ['gets an empty body', () => new Response(''), 'The MCP server sent no response'],
    ['asks outside a turn', () => ({ resultType: 'input_required', inputRequests: { k: ask } }), 'only a turn can ask'],
    [
      'asks for a sample',
      () => ({ resultType: 'input_required', inputRequests: { k: { method: 'sampling/createMessage' } } }),
      'cannot give',
    ],
  ])('give the model an error where a call %s', async (_, handle, reason) => {
    const server = serve((seen, id) => (seen.method === 'tools/call' ? handle(seen, id) : modern(seen.method)))
    expect(await responsesOf(server.fetch)).toEqual([[expect.stringContaining(reason), true]])
  })

  test('come from an event stream, with other messages before the result', async () => {
    const server = serve(({ method }, id) => {
      if (method !== 'tools/call') return modern(method)
      const messages = [
        { jsonrpc: '2.0', method: 'notifications/progress', params: {} },
        { jsonrpc: '2.0', id, result: { content: [], structuredContent: { sum: 3 } } },
      ]
      const text = messages.map(message => `event: message\ndata: ${JSON.stringify(message)}\n\n`).join('')
      return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
    })
    expect(await responsesOf(server.fetch)).toEqual([[{ sum: 3 }, false]])
  })
})

describe('an older server', () => {
  test('is initialized, and again when it has forgotten the session', async () => {
    let sessions = 0
    let calls = 0
    const server = serve(({ method, headers }, id) => {
      const known = headers.get('mcp-session-id')
      if (method === 'initialize') {
        sessions += 1
        const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
        return Response.json({ jsonrpc: '2.0', id, result }, { headers: { 'mcp-session-id': `s${sessions}` } })
      }
      if (method === 'notifications/initialized') return new Response(null, { status: 202 })
      if (known === null)
        return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'no session' } }, { status: 400 })
      if (method === 'tools/list') return { tools: [add] }
      calls += 1
      return calls === 1
        ? new Response('', { status: 404 })
        : { content: [{ type: 'text', text: `${known} ${headers.get('mcp-protocol-version')}` }] }
    })
    expect(await responsesOf(server.fetch)).toEqual([['s2 2025-06-18', false]])
  })

  test.each([401, 403, 500])('is not tried where the server returns %i', async status => {
    const server = serve(() => new Response('', { status }))
    await expect(mcpTools(url, { fetch: server.fetch })).rejects.toThrow(`The MCP server returned ${status}`)
    expect(server.seen).toHaveLength(1)
  })
})

test('a server that cannot be reached is an error', async () => {
  const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }))
  await expect(mcpTools(url, { fetch })).rejects.toThrow('The MCP server cannot be reached: fetch failed: ECONNREFUSED')
})

const ask = { method: 'elicitation/create', params: { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: {} } } }

function modern(method: string): object {
  return method === 'tools/list' ? { tools: [add] } : discovered
}

function serve(handle: Handler) {
  const seen: Seen[] = []
  return { seen, fetch: serveOne as typeof fetch }

  async function serveOne(_: unknown, init: RequestInit = {}): Promise<Response> {
    const { id, method, params = {} } = JSON.parse(String(init.body))
    const one = { method, params, headers: new Headers(init.headers) }
    seen.push(one)
    const result = handle(one, id)
    return result instanceof Response ? result : Response.json({ jsonrpc: '2.0', id, result })
  }
}

async function responsesOf(given: typeof fetch, headers: Record<string, string> = {}) {
  const tools = await mcpTools(url, { fetch: given, headers })
  const { messages } = await runAgent({ model: scriptedModel([[call('add', { a: 1 })], 'end']), tools, messages: [user('go')] }).result
  return messages.flatMap(({ content }) => (content.type === 'tool_response' ? [[content.content, content.isError]] : []))
}
