/**
 * Every call of callers that the API has, aimed at what one tenant owns: by its ids in a path, in a query, in a body, in each method of a protocol. A caller
 * with few rights gets nothing of it. The first two words of a name are the route; behind them is the way that it is called.
 */
import { randomUUID } from 'node:crypto'
import { streamFormatSchema } from '@rivulet/contract/fields'
import type { TokenRight } from '@rivulet/contract/scopes'
import { mark, type Owned, type OwnedTask } from './owned.ts'

export type Call = { path: string; body?: unknown; headers?: Record<string, string> }

export type AimedCall = {
  /** Whether the owner's own call gets a text with the mark. */
  shows: boolean
  to(owned: Owned): Promise<Call> | Call
  /** Is about the task whose turn has ended. */
  ofEnded?: true
  /** The rights that are enough for a token, each by itself. */
  rights?: readonly TokenRight[]
  /** A key that may only write gets 403. */
  reads?: true
}

type Options = Omit<AimedCall, 'to' | 'shows'>
const shown = (to: AimedCall['to'], options: Options = {}): AimedCall => ({ shows: true, to, ...options })
const quiet = (to: AimedCall['to'], options: Options = {}): AimedCall => ({ shows: false, to, ...options })

const ofAsking = (suffix: string, body?: unknown) => async (owned: Owned) => ({
  path: `/v1/tasks/${(await owned.asking()).id}${suffix}`,
  body,
})
const ofEnded = (suffix: string, body?: unknown) => async (owned: Owned) => ({
  path: `/v1/tasks/${(await owned.ended()).id}${suffix}`,
  body,
})
const ofConversation =
  (suffix = '', body?: unknown) =>
  async (owned: Owned) => ({
    path: `/openai/v1/conversations/${(await owned.ended()).id}${suffix}`,
    body,
  })
const ofSchedule = (suffix: string) => async (owned: Owned) => ({ path: `/v1/schedules/${await owned.schedule()}${suffix}` })
const ofWebhook = (suffix: string, body?: unknown) => async (owned: Owned) => ({
  path: `/v1/webhooks/${await owned.webhook()}${suffix}`,
  body,
})
const ofKey = (suffix: string, body?: unknown) => async (owned: Owned) => ({ path: `/v1/keys/${await owned.key()}${suffix}`, body })
const ofCustomer = (suffix: string, body?: unknown) => async (owned: Owned) => ({
  path: `/v1/store/customer:${await owned.customer()}${suffix}`,
  body,
})
/** Lists have something to leave out. */
const listed = (path: string) => async (owned: Owned) => {
  await Promise.all([owned.asking(), owned.ended(), owned.schedule(), owned.webhook(), owned.key(), owned.settings()])
  return { path }
}
/** `{agent}` in the path is an agent of the owner's tenant alone. */
const settings = (path: string, body?: unknown) => async (owned: Owned) => ({
  path: path.replace('{agent}', await owned.settings()),
  body,
})

/** The response has the file's name and size, which only a caller that may read it gets. */
const fileInput = async (owned: Owned) => ({ type: 'media', mimeType: 'text/plain', file: await owned.namedFile() })

const read = { rights: ['read'] } as const
const send = { rights: ['send'] } as const
const reads = { reads: true } as const

const ofTasks: Record<string, AimedCall> = {
  'GET /v1/tasks': shown(listed('/v1/tasks')),
  'GET /v1/tasks summaries': shown(listed('/v1/tasks?view=summary')),
  'GET /v1/tasks a search': shown(listed(`/v1/tasks?q=${mark}`)),
  'GET /v1/tasks by metadata': shown(listed(`/v1/tasks?metadata.mark=${mark}`)),
  'GET /v1/tasks by parent': quiet(async owned => ({ path: `/v1/tasks?parent=${(await owned.asking()).id}` })),
  'POST /v1/tasks by name': shown(async owned => ({ path: '/v1/tasks', body: { agent: 'scripted', name: (await owned.asking()).name } })),
  'POST /v1/tasks with a file': shown(async owned => ({
    path: '/v1/tasks',
    body: { agent: 'scripted', input: await fileInput(owned) },
  })),
  'GET /v1/tasks/{id}': shown(ofAsking(''), read),
  'GET /v1/tasks/{id}/turns/{number}': shown(ofAsking('/turns/1'), read),
  'GET /v1/tasks/{id}/turns/{number} with its messages': shown(ofEnded('/turns/1?wait=1s'), { ...read, ofEnded: true }),
  'GET /v1/tasks/{id}/turns/{number}/attempts': quiet(ofAsking('/turns/1/attempts'), read),
  'GET /v1/tasks/{id}/steps': quiet(ofAsking('/steps')),
  'GET /v1/tasks/{id}/messages': shown(ofAsking('/messages'), read),
  'GET /v1/tasks/{id}/messages/{index}': shown(ofAsking('/messages/0'), read),
  'GET /v1/tasks/{id}/messages/{index}/events': shown(ofAsking('/messages/0/events'), read),
  'GET /v1/tasks/{id}/events': shown(ofAsking('/events'), read),
  'GET /v1/tasks/{id}/state': shown(ofEnded('/state'), { ...read, ofEnded: true }),
  'GET /v1/tasks/{id}/export': shown(ofAsking('/export'), read),
  'GET /v1/tasks/{id}/waits/{wait}': shown(
    async owned => {
      const { id, wait } = await owned.asking()
      return { path: `/v1/tasks/${id}/waits/${wait}` }
    },
    { rights: ['read', 'answer'] },
  ),
  'POST /v1/tasks/{id}/waits/{wait}/answer': shown(
    async owned => {
      const { id, wait } = await owned.asking()
      return { path: `/v1/tasks/${id}/waits/${wait}/answer`, body: { action: 'accept' } }
    },
    { rights: ['answer'] },
  ),
  'POST /v1/tasks/{id}/waits/{wait}/answer with the stream': shown(async owned => {
    const { id, wait } = await owned.asking()
    return { path: `/v1/tasks/${id}/waits/${wait}/answer?format=agentex`, body: { action: 'accept' } }
  }, reads),
  'POST /v1/tasks/{id}/signals': quiet(ofAsking('/signals', { name: 'paid' }), { rights: ['answer'] }),
  'POST /v1/tasks/{id}/turns': quiet(ofAsking('/turns', { input: 'more' }), send),
  'POST /v1/tasks/{id}/turns that declines': quiet(ofAsking('/turns', { input: 'more', ifBusy: 'decline' })),
  'POST /v1/tasks/{id}/turns that interrupts': quiet(ofAsking('/turns', { input: 'more', ifBusy: 'interrupt' })),
  'POST /v1/tasks/{id}/turns with params': quiet(ofAsking('/turns', { input: 'more', params: { steps: [] } })),
  'POST /v1/tasks/{id}/turns that rewinds': quiet(ofEnded('/turns', { input: 'more', after: 0 }), { ofEnded: true }),
  'POST /v1/tasks/{id}/turns that waits': shown(ofEnded('/turns?wait=1ms', { input: 'more' }), { reads: true, ofEnded: true }),
  'POST /v1/tasks/{id}/retry': shown(ofEnded('/retry', {}), { ofEnded: true }),
  'POST /v1/tasks/{id}/fork': shown(ofEnded('/fork', {}), { ofEnded: true }),
  'POST /v1/tasks/{id}/cancel': shown(ofAsking('/cancel', {}), { rights: ['cancel'] }),
  'POST /v1/tasks/{id}/tokens': quiet(ofAsking('/tokens', { can: 'read' })),
  'DELETE /v1/tasks/{id}/tokens': quiet(ofAsking('/tokens')),
  'PATCH /v1/tasks/{id}': shown(ofAsking('', { metadata: { more: 1 } })),
  'PATCH /v1/tasks/{id} its name': shown(owned => ofAsking('', { name: randomUUID() })(owned)),
  'PUT /v1/tasks/{id}/state': quiet(async owned => ({ ...(await ofEnded('/state', { value: 1 })(owned)), headers: { 'if-match': '*' } }), {
    ofEnded: true,
  }),
  'DELETE /v1/tasks/{id}': quiet(ofEnded(''), { ofEnded: true }),
  'GET /v1/waits': shown(listed('/v1/waits')),
  'GET /v1/waits of one task': shown(async owned => ({ path: `/v1/waits?task=${(await owned.asking()).id}` })),
  'POST /v1/events': shown(async owned => ({ path: '/v1/events', body: { tasks: { [(await owned.asking()).id]: null } } })),
  ...Object.fromEntries(
    streamFormatSchema.options.map(format => [
      `GET /v1/tasks/{id}/events as ${format}`,
      shown(ofEnded(`/events?format=${format}`), { ...read, ofEnded: true }),
    ]),
  ),
}

const ofTenants: Record<string, AimedCall> = {
  'GET /metrics': shown(settings('/metrics')),
  'GET /v1/whoami': quiet(() => ({ path: '/v1/whoami' })),
  'GET /v1/agents': shown(settings('/v1/agents')),
  'GET /v1/agents/activity': quiet(settings('/v1/agents/activity')),
  'PATCH /v1/agents/{name}': shown(settings('/v1/agents/{agent}', { paused: true })),
  'DELETE /v1/agents/{name}': quiet(settings('/v1/agents/{agent}')),
  'GET /v1/limits': shown(settings('/v1/limits')),
  'GET /v1/limits/{agent}': shown(settings('/v1/limits/{agent}')),
  'PUT /v1/limits/{agent}': shown(settings('/v1/limits/{agent}', { perKey: 1 })),
  'DELETE /v1/limits/{agent}': quiet(settings('/v1/limits/{agent}')),
  'GET /v1/usage': quiet(listed('/v1/usage?by=agent')),
  'GET /v1/workers': quiet(listed('/v1/workers')),
  'GET /v1/versions': quiet(listed('/v1/versions')),
  'GET /v1/errors': quiet(listed('/v1/errors')),
  'GET /v1/feed': quiet(listed('/v1/feed')),
  'GET /v1/store/{scope}': shown(ofCustomer('')),
  'GET /v1/store/{scope} a search': shown(ofCustomer(`?q=${mark}`)),
  'GET /v1/store/{scope}/{key}': shown(ofCustomer('/note')),
  'PUT /v1/store/{scope}/{key}': quiet(ofCustomer('/note', { value: 1 })),
  'PATCH /v1/store/{scope}/{key}': shown(ofCustomer('/note', { value: { more: 1 } })),
  'DELETE /v1/store/{scope}/{key}': quiet(ofCustomer('/note')),
  'DELETE /v1/store/{scope}': quiet(ofCustomer('')),
  'POST /v1/schedules': quiet(() => ({ path: '/v1/schedules', body: { agent: 'scripted', cron: '0 0 1 1 *', input: 'x' } })),
  'POST /v1/schedules with a file': shown(async owned => ({
    path: '/v1/schedules',
    body: { agent: 'scripted', cron: '0 0 1 1 *', input: await fileInput(owned) },
  })),
  'GET /v1/schedules': shown(listed('/v1/schedules')),
  'GET /v1/schedules/{id}': shown(ofSchedule('')),
  'GET /v1/schedules/{id}/history': quiet(ofSchedule('/history')),
  'POST /v1/schedules/{id}/pause': shown(ofSchedule('/pause')),
  'POST /v1/schedules/{id}/resume': shown(ofSchedule('/resume')),
  'POST /v1/schedules/{id}/trigger': quiet(ofSchedule('/trigger')),
  'DELETE /v1/schedules/{id}': quiet(ofSchedule('')),
  'POST /v1/files': quiet(() => ({ path: '/v1/files', body: 'x' }), send),
  'GET /v1/files/{id}': shown(async owned => ({ path: `/v1/files/${(await owned.asking()).file}` }), read),
  'DELETE /v1/files/{id}': quiet(async owned => ({ path: `/v1/files/${(await owned.asking()).file}` })),
  'POST /v1/webhooks': quiet(() => ({ path: '/v1/webhooks', body: { url: 'https://example.com/own', events: ['turn.finished'] } })),
  'GET /v1/webhooks': shown(listed('/v1/webhooks')),
  'GET /v1/webhooks/{id}': shown(ofWebhook('')),
  'PATCH /v1/webhooks/{id}': shown(ofWebhook('', { status: 'disabled' })),
  'PATCH /v1/webhooks/{id} its secret': shown(ofWebhook('', { secret: true })),
  'GET /v1/webhooks/{id}/deliveries': quiet(ofWebhook('/deliveries')),
  'POST /v1/webhooks/{id}/deliveries/{delivery}/retry': quiet(async owned => {
    const id = await owned.webhook()
    return { path: `/v1/webhooks/${id}/deliveries/${id}/retry` }
  }),
  'DELETE /v1/webhooks/{id}': quiet(ofWebhook('')),
  'POST /v1/keys': quiet(() => ({ path: '/v1/keys', body: { name: 'made', scopes: ['tasks:read'] } })),
  'GET /v1/keys': shown(listed('/v1/keys')),
  'DELETE /v1/keys/{id}': shown(ofKey('')),
  'POST /v1/keys/{id}/rotate': shown(ofKey('/rotate', {})),
  // Other callers have entries of their own, with what they named.
  'GET /v1/audit': shown(async owned => {
    await owned.settings()
    return { path: `/v1/audit?action=token.created&target=${(await owned.asking()).id}` }
  }),
}

const chat = { model: 'echo', messages: [{ role: 'user', content: 'hi' }] }
const toResponse = (owned: Owned) => owned.ended().then(({ id }) => `${id}.1.1`)
const ofOpenAi: Record<string, AimedCall> = {
  'POST /openai/v1/responses in a conversation': shown(async owned => ({
    path: '/openai/v1/responses',
    body: { model: 'scripted', input: 'x', conversation: (await owned.ended()).id, background: true },
  })),
  'POST /openai/v1/responses after another': shown(async owned => ({
    path: '/openai/v1/responses',
    body: { model: 'scripted', input: 'x', previous_response_id: await toResponse(owned), background: true },
  })),
  'POST /openai/v1/responses with an item of another': quiet(async owned => ({
    path: '/openai/v1/responses',
    body: {
      ...{ model: 'scripted', background: true },
      input: [
        { type: 'item_reference', id: await owned.openAiItem() },
        { role: 'user', content: 'x' },
      ],
    },
  })),
  'POST /openai/v1/responses that accepts': shown(async owned => {
    const { id, wait } = await owned.asking()
    const input = [{ type: 'mcp_approval_response', approval_request_id: `mcpr_${id}.${wait}`, approve: true }]
    return { path: '/openai/v1/responses', body: { model: 'scripted', input, background: true } }
  }),
  'POST /openai/v1/responses that streams': shown(
    async owned => ({
      path: '/openai/v1/responses',
      body: { model: 'scripted', input: 'x', conversation: (await owned.ended()).id, stream: true },
    }),
    reads,
  ),
  'GET /openai/v1/responses/{id}': shown(async owned => ({ path: `/openai/v1/responses/${await toResponse(owned)}` })),
  'GET /openai/v1/responses/{id} as a stream': shown(async owned => ({
    path: `/openai/v1/responses/${await toResponse(owned)}?stream=true`,
  })),
  'GET /openai/v1/responses/{id}/input_items': shown(async owned => ({
    path: `/openai/v1/responses/${await toResponse(owned)}/input_items`,
  })),
  'POST /openai/v1/responses/{id}/cancel': shown(async owned => ({
    path: `/openai/v1/responses/${(await owned.asking()).id}.1.1/cancel`,
    body: {},
  })),
  'DELETE /openai/v1/responses/{id}': quiet(async owned => ({ path: `/openai/v1/responses/${await toResponse(owned)}` })),
  'POST /openai/v1/chat/completions': quiet(() => ({ path: '/openai/v1/chat/completions', body: chat }), reads),
  'POST /openai/v1/chat/completions that accepts': quiet(async owned => {
    const { id, wait } = await owned.asking()
    const messages = [{ role: 'tool', tool_call_id: `call_${id}.${wait}`, content: '{"action":"accept"}' }]
    return { path: '/openai/v1/chat/completions', body: { model: 'scripted', messages } }
  }, reads),
  'POST /openai/v1/conversations': quiet(() => ({ path: '/openai/v1/conversations', body: {} })),
  'POST /openai/v1/conversations with an item of another': quiet(async owned => ({
    path: '/openai/v1/conversations',
    body: { items: [{ type: 'item_reference', id: await owned.openAiItem() }] },
  })),
  'GET /openai/v1/conversations/{id}': shown(ofConversation()),
  'POST /openai/v1/conversations/{id}': quiet(ofConversation('', { metadata: { mark: 'another' } })),
  'DELETE /openai/v1/conversations/{id}': quiet(ofConversation()),
  'POST /openai/v1/conversations/{id}/items': quiet(ofConversation('/items', { items: [{ role: 'user', content: 'x' }] })),
  'GET /openai/v1/conversations/{id}/items': shown(ofConversation('/items')),
  'GET /openai/v1/conversations/{id}/items/{item}': shown(async owned => {
    const { id } = await owned.ended()
    return { path: `/openai/v1/conversations/${id}/items/msg_${id}.0.0` }
  }),
  'DELETE /openai/v1/conversations/{id}/items/{item}': quiet(async owned => {
    const { id } = await owned.ended()
    return { path: `/openai/v1/conversations/${id}/items/msg_${id}.0.0` }
  }),
  'POST /openai/v1/files': quiet(() => ({ path: '/openai/v1/files', body: 'x' })),
  'GET /openai/v1/files': shown(listed('/openai/v1/files')),
  'GET /openai/v1/files/{id}': shown(async owned => ({ path: `/openai/v1/files/${await owned.namedFile()}` })),
  'GET /openai/v1/files/{id}/content': shown(async owned => ({ path: `/openai/v1/files/${(await owned.asking()).file}/content` })),
  'DELETE /openai/v1/files/{id}': quiet(async owned => ({ path: `/openai/v1/files/${await owned.namedFile()}` })),
  'GET /openai/v1/models': shown(settings('/openai/v1/models')),
  'GET /openai/v1/models/{model}': shown(settings('/openai/v1/models/{agent}')),
}

const run = (threadId: string, rest: object = {}) => ({ threadId, runId: randomUUID(), messages: [], tools: [], context: [], ...rest })
const said = () => [{ id: randomUUID(), role: 'user', content: 'hi' }]
const ofAgUi: Record<string, AimedCall> = {
  'POST /ag-ui/{agent} in a thread': shown(
    async owned => ({ path: '/ag-ui/scripted', body: run((await owned.ended()).id, { messages: said() }) }),
    reads,
  ),
  'POST /ag-ui/{agent} that accepts': shown(async owned => {
    const { id, wait } = await owned.asking()
    const resume = [{ interruptId: wait, status: 'resolved', payload: { approved: true } }]
    return { path: '/ag-ui/scripted', body: run(id, { resume }) }
  }, reads),
  'GET /ag-ui/{agent}/threads/{thread}': shown(async owned => ({ path: `/ag-ui/scripted/threads/${(await owned.asking()).id}` })),
  'POST /ag-ui/{agent}/threads/{thread}/cancel': quiet(async owned => ({
    path: `/ag-ui/scripted/threads/${(await owned.asking()).id}/cancel`,
    body: {},
  })),
}

const message = (rest: object = {}) => ({ message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }], ...rest } })
const configuration = { returnImmediately: true }
const rpc = (path: string, method: string, params: object) => ({ path, body: { jsonrpc: '2.0', id: 1, method, params } })
const answering = ({ turn, wait }: OwnedTask) => message({ taskId: turn, parts: [{ data: { wait, action: 'accept' } }] })
const toA2a = (method: string, params: (task: OwnedTask) => object) => async (owned: Owned) =>
  rpc('/a2a/scripted', method, params(await owned.asking()))
const ofTurn = ({ turn: id }: OwnedTask) => ({ id })
const ofA2a: Record<string, AimedCall> = {
  'GET /a2a/{agent}/.well-known/agent-card.json': shown(settings('/a2a/{agent}/.well-known/agent-card.json')),
  'GET /.well-known/agent-card.json': quiet(settings('/.well-known/agent-card.json')),
  'POST /a2a/{agent} SendMessage': shown(
    toA2a('SendMessage', task => ({ ...answering(task), configuration })),
    reads,
  ),
  'POST /a2a/{agent} SendMessage in a context': quiet(
    toA2a('SendMessage', ({ id }) => ({ ...message({ contextId: id }), configuration })),
    reads,
  ),
  'POST /a2a/{agent} message/send': shown(
    toA2a('message/send', task => ({ ...answering(task), configuration: { blocking: false } })),
    reads,
  ),
  'POST /a2a/{agent} SendStreamingMessage': shown(toA2a('SendStreamingMessage', answering), reads),
  'POST /a2a/{agent} GetTask': shown(toA2a('GetTask', ofTurn), reads),
  'POST /a2a/{agent} CancelTask': shown(toA2a('CancelTask', ofTurn), reads),
  'POST /a2a/{agent} SubscribeToTask': shown(toA2a('SubscribeToTask', ofTurn), reads),
  'POST /a2a/{agent} ListTasks': shown(
    toA2a('ListTasks', ({ id }) => ({ contextId: id, includeArtifacts: true, historyLength: 10 })),
    reads,
  ),
  'POST /a2a/{agent} CreateTaskPushNotificationConfig': quiet(toA2a('CreateTaskPushNotificationConfig', ofTurn), reads),
  'POST /a2a/{agent} GetTaskPushNotificationConfig': quiet(toA2a('GetTaskPushNotificationConfig', ofTurn), reads),
  'POST /a2a/{agent} ListTaskPushNotificationConfigs': quiet(toA2a('ListTaskPushNotificationConfigs', ofTurn), reads),
  'POST /a2a/{agent} DeleteTaskPushNotificationConfig': quiet(toA2a('DeleteTaskPushNotificationConfig', ofTurn), reads),
  'POST /a2a/{agent} GetExtendedAgentCard': quiet(
    toA2a('GetExtendedAgentCard', () => ({})),
    reads,
  ),
  'POST /a2a/{agent}/message:send': shown(async owned => ({
    path: '/a2a/scripted/message:send',
    body: { ...answering(await owned.asking()), configuration },
  })),
  'POST /a2a/{agent}/message:send in a context': quiet(async owned => ({
    path: '/a2a/scripted/message:send',
    body: { ...message({ contextId: (await owned.ended()).id }), configuration },
  })),
  'POST /a2a/{agent}/message:stream': shown(
    async owned => ({ path: '/a2a/scripted/message:stream', body: answering(await owned.asking()) }),
    reads,
  ),
  'GET /a2a/{agent}/tasks': shown(listed('/a2a/scripted/tasks?includeArtifacts=true&historyLength=10')),
  'GET /a2a/{agent}/tasks/{task}': shown(async owned => ({ path: `/a2a/scripted/tasks/${(await owned.asking()).turn}` })),
  'GET /a2a/{agent}/tasks/{task} :subscribe': shown(async owned => ({
    path: `/a2a/scripted/tasks/${(await owned.asking()).turn}:subscribe`,
  })),
  'POST /a2a/{agent}/tasks/{task} :cancel': shown(async owned => ({
    path: `/a2a/scripted/tasks/${(await owned.asking()).turn}:cancel`,
    body: {},
  })),
  'POST /a2a/{agent}/tasks/{task} :subscribe': shown(
    async owned => ({ path: `/a2a/scripted/tasks/${(await owned.asking()).turn}:subscribe`, body: {} }),
    reads,
  ),
}

const version = '2026-07-28'
const _meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
}
function mcp(method: string, params: { name?: string; taskId?: string } & object = {}): Call {
  const named = { 'mcp-method': method, 'mcp-name': params.name ?? params.taskId ?? '' }
  return { ...rpc('/mcp', method, { _meta, ...params }), headers: { 'mcp-protocol-version': version, ...named } }
}
const toMcp = (method: string, params: (task: OwnedTask) => object = () => ({})) =>
  shown(async owned => mcp(method, params(await owned.asking())), reads)
const ofMcp: Record<string, AimedCall> = {
  'POST /mcp initialize': quiet(() => rpc('/mcp', 'initialize', { protocolVersion: '2025-11-25' }), reads),
  'POST /mcp ping': quiet(() => rpc('/mcp', 'ping', {}), reads),
  'POST /mcp server/discover': quiet(() => mcp('server/discover'), reads),
  'POST /mcp tools/list': shown(async owned => {
    await owned.settings()
    return mcp('tools/list')
  }, reads),
  'POST /mcp tools/call': {
    ...toMcp('tools/call', ({ name }) => ({ name: 'scripted', arguments: { message: 'x', task: name } })),
    shows: false,
  },
  'POST /mcp tools/call the next round': {
    ...toMcp('tools/call', ({ turn, wait }) => ({
      name: 'scripted',
      requestState: turn,
      inputResponses: { [wait]: { action: 'accept' } },
    })),
    shows: false,
  },
  'POST /mcp tasks/get': toMcp('tasks/get', ({ turn }) => ({ taskId: turn })),
  'POST /mcp tasks/update': {
    ...toMcp('tasks/update', ({ turn, wait }) => ({ taskId: turn, inputResponses: { [wait]: { action: 'accept' } } })),
    shows: false,
  },
  'POST /mcp tasks/cancel': { ...toMcp('tasks/cancel', ({ turn }) => ({ taskId: turn })), shows: false },
  'POST /mcp notifications/cancelled': quiet(
    async owned => ({
      path: '/mcp',
      body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      headers: { 'mcp-session-id': await owned.mcpSession() },
    }),
    reads,
  ),
  'POST /mcp subscriptions/listen': toMcp('subscriptions/listen', ({ turn }) => ({ notifications: { taskIds: [turn] } })),
}

export const aimedCalls: Record<string, AimedCall> = { ...ofTasks, ...ofTenants, ...ofOpenAi, ...ofAgUi, ...ofA2a, ...ofMcp }
