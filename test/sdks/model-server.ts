/** A model on this machine that speaks OpenAI's Chat Completions and Responses, streamed, and says what a test has written down. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export type Reply = {
  think?: string[]
  say?: string[]
  call?: { id: string; name: string; arguments: string[] }
  /** Breaks the connection off after what was said. */
  breaksOff?: boolean
  /** Reaches its limit of output, in Responses. */
  isIncomplete?: boolean
}

export type ModelServer = { url: string; requests: Record<string, unknown>[]; headers: IncomingHttpHeaders[] }

type Replies = Reply[] | ((request: Record<string, unknown>) => Reply)

/** Returns the n-th reply to the n-th request of a conversation, counted by the model's earlier messages. */
export async function startModelServer(replies: Replies): Promise<ModelServer> {
  const { close, ...server } = await openModelServer(replies)
  onTestFinished(close)
  return server
}

/** A model server that its caller closes. */
export async function openModelServer(replies: Replies): Promise<ModelServer & { close: () => void }> {
  const requests: Record<string, unknown>[] = []
  const headers: IncomingHttpHeaders[] = []
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request)
    requests.push(body)
    headers.push(request.headers)
    const reply = typeof replies === 'function' ? replies(body) : (replies[requests.length - 1] ?? {})
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const isChat = request.url?.endsWith('/chat/completions')
    for (const line of isChat ? chatLines(reply, `chat-${requests.length}`) : responsesLines(reply)) {
      response.write(line)
      // One at a time, as a model does.
      await new Promise(resolve => setImmediate(resolve))
    }
    if (reply.breaksOff) response.destroy()
    else response.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests, headers, close }
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = ''
  for await (const chunk of request) text += chunk
  return JSON.parse(text)
}

/** @param id of the response. LangGraph takes a message with the id of an earlier one for a change of that one. */
function chatLines({ think = [], say = [], call, breaksOff }: Reply, id: string): string[] {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    lineOf({ id, object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })
  const fragments = call?.arguments.map((text, place) => ({
    index: 0,
    ...(place === 0 && { id: call.id, type: 'function' }),
    function: { ...(place === 0 && { name: call.name }), arguments: text },
  }))
  const said = [
    ...think.map(reasoning => chunk({ role: 'assistant', reasoning, reasoning_content: reasoning })),
    ...say.map(content => chunk({ role: 'assistant', content })),
    ...(fragments ?? []).map(fragment => chunk({ role: 'assistant', tool_calls: [fragment] })),
  ]
  if (breaksOff) return said
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }
  return [
    ...said,
    chunk({}, call ? 'tool_calls' : 'stop'),
    lineOf({ id, object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }),
    'data: [DONE]\n\n',
  ]
}

function responsesLines({ think = [], say = [], call, breaksOff, isIncomplete }: Reply): string[] {
  const events: Record<string, unknown>[] = [
    { type: 'response.created', response: { id: 'resp-1', created_at: 1, model: 'm', status: 'in_progress', output: [] } },
  ]
  const output: Record<string, unknown>[] = []
  const finishItem = (item: Record<string, unknown>) => {
    events.push({ type: 'response.output_item.done', output_index: output.length, item })
    output.push(item)
  }
  if (think.length > 0) {
    const item = { id: 'rs-1', type: 'reasoning', summary: [{ type: 'summary_text', text: think.join('') }] }
    const at = { item_id: item.id, output_index: output.length }
    events.push({ type: 'response.output_item.added', output_index: output.length, item: { ...item, summary: [] } })
    events.push(...think.map(delta => ({ type: 'response.reasoning_summary_text.delta', ...at, summary_index: 0, delta })))
    finishItem(item)
  }
  if (say.length > 0) {
    const content = [{ type: 'output_text', text: say.join(''), annotations: [] }]
    const item = { id: 'msg-1', type: 'message', role: 'assistant', status: 'completed', content }
    const at = { item_id: item.id, output_index: output.length, content_index: 0 }
    events.push({ type: 'response.output_item.added', output_index: output.length, item: { ...item, content: [] } })
    events.push(...say.map(delta => ({ type: 'response.output_text.delta', ...at, delta })))
    finishItem(item)
  }
  if (call) {
    const item = { id: `fc-${call.id}`, type: 'function_call', call_id: call.id, name: call.name, arguments: call.arguments.join('') }
    const at = { item_id: item.id, output_index: output.length }
    events.push({ type: 'response.output_item.added', output_index: output.length, item: { ...item, arguments: '' } })
    events.push(...call.arguments.map(delta => ({ type: 'response.function_call_arguments.delta', ...at, delta })))
    finishItem({ ...item, status: 'completed' })
  }
  const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8, input_tokens_details: {}, output_tokens_details: {} }
  const cut = { id: 'resp-1', status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output, usage }
  if (isIncomplete) events.push({ type: 'response.incomplete', response: cut })
  else if (!breaksOff) events.push({ type: 'response.completed', response: { id: 'resp-1', status: 'completed', output, usage } })
  return events.map((event, sequence_number) => lineOf({ ...event, sequence_number }))
}

function lineOf(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
