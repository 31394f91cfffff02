/** A2A's client, unmodified, over JSON-RPC and HTTP+JSON of 1.0 and over JSON-RPC of 0.3: tasks, questions, retries, and streams that are resumed. */
import { Role, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk'
import { type Client, ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fail, full, repeat, rest, type Step, say } from '../support/agents/scripts.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { dataInStream, idsInStream } from '../support/viewers/stream-text.ts'
import { paid, payerOf, registrar } from './asking-agents.ts'
import { haltingAgent, halves, taskWithGap, wipeLog } from './lost-logs.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

const payer = payerOf(1)

const steps: Step[] = [
  repeat(5, say(0, 'word '), rest(5)),
  full(1, { type: 'data', data: { whole: true } }),
  full(2, { type: 'media', mimeType: 'image/png', data: 'AAEC' }),
  say(3, 'A draft'),
  rest(5),
  full(3, { type: 'text', text: 'The final word.', format: 'plain' }),
]
const output = ['word word word word word ', { whole: true }, 'AAEC', 'The final word.']

const bindings = ['JSONRPC', 'HTTP+JSON', '0.3'] as const

describe.each(bindings)('over %s', binding => {
  test('a message is a task that is streamed, and read again', async () => {
    const client = await clientOf('scripted', binding)
    const chunks = await collect(client.sendMessageStream(message('go', { steps })))
    expect(chunks[0]?.payload?.$case).toBe('task')
    expect(chunks.at(-1)?.payload).toMatchObject({ $case: 'statusUpdate', value: { status: { state: TaskState.TASK_STATE_COMPLETED } } })
    const folded = fold(chunks)
    expect(folded).toEqual(output)
    const { id = '', contextId = '' } = taskIn(chunks) ?? {}
    const read = await client.getTask({ tenant: '', id, historyLength: undefined })
    expect([read.status?.state, read.contextId, outputOf(read)]).toEqual([TaskState.TASK_STATE_COMPLETED, contextId, output])
    expect(read.history.map(({ role, parts }) => [role, parts[0]?.content?.value])).toEqual([[Role.ROLE_USER, 'go']])
    // The next message of the same context is another task.
    const next = taskOf(await client.sendMessage(message('more', { steps: [say(0, 'More.')] }, { contextId })))
    expect([next.contextId, next.id === id, outputOf(next)]).toEqual([contextId, false, ['More.']])
    expect(await platform.client.messages(contextId)).toHaveLength(2 + 5)
  })

  test('a message that is sent again is the same task, and one that waits for nothing returns at once', async () => {
    const client = await clientOf('scripted', binding)
    const given = message('go', { steps: [rest(100), say(0, 'Done.')] })
    const first = taskOf(await client.sendMessage({ ...given, configuration: immediately }))
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(first.status?.state)
    const again = taskOf(await client.sendMessage({ ...given, configuration: immediately }))
    expect(again.id).toBe(first.id)
    await until('it ends', async () => (await get(client, first.id)).status?.state === TaskState.TASK_STATE_COMPLETED)
  })

  test('a turn that fails, and one that is canceled, say so', async () => {
    const client = await clientOf('scripted', binding)
    const failed = taskOf(await client.sendMessage(message('go', { steps: [say(0, 'Half'), fail('no luck')] })))
    expect([failed.status?.state, failed.status?.message?.role]).toEqual([TaskState.TASK_STATE_FAILED, Role.ROLE_AGENT])
    const chunks: StreamResponse[] = []
    const running = follow(client.sendMessageStream(message('go', { steps: [say(0, 'Half'), rest(60_000)] })), chunks)
    await until('it speaks', () => fold(chunks)[0] === 'Half')
    const { id = '' } = taskIn(chunks) ?? {}
    const other = await clientOf('scripted', binding, 1)
    const watched: StreamResponse[] = []
    const watching = follow(other.resubscribeTask({ tenant: '', id }), watched)
    await until('it is watched', () => watched.length > 0)
    const canceled = await client.cancelTask({ tenant: '', id, metadata: undefined })
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    await Promise.all([running, watching])
    for (const seen of [chunks, watched])
      expect(seen.at(-1)?.payload).toMatchObject({ value: { status: { state: TaskState.TASK_STATE_CANCELED } } })
    await expect(client.cancelTask({ tenant: '', id, metadata: undefined })).rejects.toThrow('The task has ended')
    await expect(collect(client.resubscribeTask({ tenant: '', id }))).rejects.toThrow('The task has ended')
    await expect(client.sendMessage(message('more', {}, { taskId: id }))).rejects.toThrow('The task has ended')
  })

  test('a turn that asks needs input, and goes on with it', async () => {
    await startOwnWorker(platform, [payer, registrar])
    const client = await clientOf('payer', binding)
    const chunks = await collect(client.sendMessageStream(message('go')))
    const last = chunks.at(-1)?.payload
    expect(last).toMatchObject({ $case: 'statusUpdate', value: { status: { state: TaskState.TASK_STATE_INPUT_REQUIRED } } })
    const { id: taskId = '', contextId = '' } = taskIn(chunks) ?? {}
    const open = { ...everything, contextId, status: TaskState.TASK_STATE_INPUT_REQUIRED }
    if (binding !== '0.3') expect((await client.listTasks(open)).tasks.map(({ id }) => id)).toEqual([taskId])
    const before = paid.length
    await expect(client.sendMessage(message('perhaps', {}, { taskId, contextId }))).rejects.toThrow('waits for an answer')
    const rest = await collect(client.sendMessageStream(message('approve', {}, { taskId, contextId })))
    expect([paid.length - before, outputOf(await get(client, taskId))]).toEqual([1, ['I will pay.', 'Done.']])
    expect(fold(rest)).toEqual(['I will pay.', 'Done.'])
    const forms = await clientOf('registrar', binding)
    const asking = taskOf(await forms.sendMessage(message('go')))
    expect(asking.status?.message?.parts[0]?.content?.value).toBe('Who are you?')
    const { wait } = (asking.status?.message?.parts[1]?.content?.value ?? {}) as { wait: string }
    const wrong = answer(asking, { wait, action: 'accept', content: { name: 1 } })
    await expect(forms.sendMessage(wrong)).rejects.toThrow()
    const done = taskOf(await forms.sendMessage(answer(asking, { wait, action: 'accept', content: { name: 'Ada' } })))
    expect(outputOf(done)).toEqual(['accept {"name":"Ada"}'])
  })

  test('the values of a form are enough where one wait is open', async () => {
    await startOwnWorker(platform, [registrar])
    const client = await clientOf('registrar', binding)
    const asking = taskOf(await client.sendMessage(message('go')))
    const done = taskOf(await client.sendMessage(answer(asking, { name: 'Ada' })))
    expect(outputOf(done)).toEqual(['accept {"name":"Ada"}'])
  })

  test('tasks are listed, the latest first, by context, state and time, in pages', async () => {
    // 0.3 has no such call.
    if (binding === '0.3') return
    const client = await clientOf('scripted', binding)
    const first = taskOf(await client.sendMessage(message('one', { steps: [say(0, 'One.')] })))
    const { contextId } = first
    const second = taskOf(await client.sendMessage(message('two', { steps: [fail('no')] }, { contextId })))
    const third = taskOf(
      await client.sendMessage({ ...message('three', { steps: [rest(60_000)] }, { contextId }), configuration: immediately }),
    )
    await until('it runs', async () => (await get(client, third.id)).status?.state === TaskState.TASK_STATE_WORKING)
    const list = (given: Partial<Parameters<Client['listTasks']>[0]> = {}) => client.listTasks({ ...everything, contextId, ...given })
    const all = await list()
    expect(all).toMatchObject({ nextPageToken: '', pageSize: 50, totalSize: 3 })
    expect(all.tasks.map(({ id }) => id)).toEqual([third.id, second.id, first.id])
    expect(all.tasks.map(({ artifacts }) => artifacts)).toEqual([[], [], []])
    expect((await list({ includeArtifacts: true })).tasks.map(outputOf)).toEqual([[], [], ['One.']])
    expect((await list({ historyLength: 0 })).tasks.map(({ history }) => history)).toEqual([[], [], []])
    const pages = [await list({ pageSize: 1 })]
    while (pages.length < 3) pages.push(await list({ pageSize: 1, pageToken: pages.at(-1)?.nextPageToken ?? '' }))
    expect(pages.map(({ tasks: [task], totalSize, nextPageToken }) => [task?.id, totalSize, nextPageToken !== ''])).toEqual([
      [third.id, 3, true],
      [second.id, 3, true],
      [first.id, 3, false],
    ])
    for (const [status, ids] of [
      [TaskState.TASK_STATE_COMPLETED, [first.id]],
      [TaskState.TASK_STATE_FAILED, [second.id]],
      [TaskState.TASK_STATE_WORKING, [third.id]],
      [TaskState.TASK_STATE_SUBMITTED, []],
      [TaskState.TASK_STATE_INPUT_REQUIRED, []],
      [TaskState.TASK_STATE_REJECTED, []],
    ] as const)
      expect([status, (await list({ status })).tasks.map(({ id }) => id)]).toEqual([status, ids])
    const since = all.tasks[1]?.status?.timestamp ?? ''
    expect((await list({ statusTimestampAfter: since })).tasks.map(({ id }) => id)).toEqual([third.id, second.id])
    expect(await list({ contextId: crypto.randomUUID() })).toMatchObject({ tasks: [], totalSize: 0 })
    await expect(list({ pageSize: 101 })).rejects.toThrow('1 to 100')
    await expect(list({ pageToken: 'next' })).rejects.toThrow('token')
    await client.cancelTask({ tenant: '', id: third.id, metadata: undefined })
    expect((await list({ status: TaskState.TASK_STATE_CANCELED })).tasks.map(({ id }) => id)).toEqual([third.id])
    // Without a context: those of the agent alone.
    const others = await (await clientOf('echo', binding)).listTasks({ ...everything, contextId: '' })
    expect(others.tasks.some(({ id }) => id === first.id)).toBe(false)
    expect((await list({ contextId: '', pageSize: 100 })).tasks.some(({ id }) => id === first.id)).toBe(true)
  })

  test('a message that is sent again when its log is gone gets the whole task, and its end', async () => {
    const given = message('go', { steps })
    const { contextId = '' } = taskIn(await collect((await clientOf('scripted', binding)).sendMessageStream(given))) ?? {}
    await wipeLog(platform, contextId)
    const again = await collect((await clientOf('scripted', binding, 1)).sendMessageStream(given))
    expect(again.map(({ payload }) => payload?.$case)).toEqual(['task', 'statusUpdate'])
    expect(again.at(-1)?.payload).toMatchObject({ value: { status: { state: TaskState.TASK_STATE_COMPLETED } } })
    expect(fold(again)).toEqual(output)
  })

  test('a task whose log is lost while it works has everything in the end, for a client that stayed and one that subscribes then', async () => {
    const { agent, goOn } = haltingAgent()
    await startOwnWorker(platform, [agent])
    const chunks: StreamResponse[] = []
    const running = follow((await clientOf('halting', binding)).sendMessageStream(message('go')), chunks)
    await until('it speaks', () => fold(chunks)[0] === halves[0])
    const { id = '', contextId = '' } = taskIn(chunks) ?? {}
    await wipeLog(platform, contextId)
    const watching = collect((await clientOf('halting', binding, 1)).resubscribeTask({ tenant: '', id }))
    goOn(1)
    await running
    for (const seen of [chunks, await watching]) expect(fold(seen)).toEqual([halves.join('')])
  })

  test('files are URLs of ours, in messages and in artifacts; other URLs and bytes stay what they are', async () => {
    const headers = { 'content-type': 'image/png', 'x-filename': 'cat.png' }
    const { body } = await platform.client.send<{ file: { id: string } }>('POST', '/v1/files', { body: new Uint8Array([1, 2]), headers })
    const url = (value: string) => ({
      content: { $case: 'url' as const, value },
      metadata: undefined,
      filename: '',
      mediaType: 'image/png',
    })
    const parts = [url(`rivulet:files/${body.file.id}`), url('https://example.com/dog.png')]
    const drawn = [{ file: body.file.id, name: 'cat.png' }, { url: 'https://example.com/dog.png' }, { data: 'AAEC' }]
    const draw = drawn.map((source, index) => full(index, { type: 'media', mimeType: 'image/png', ...source }))
    const client = await clientOf('scripted', binding)
    const { id } = taskOf(await client.sendMessage(sent(parts, { steps: draw }, {})))
    const { artifacts, history } = await get(client, id)
    const shown = (given: typeof parts) => given.map(({ content, mediaType, filename }) => [content.value, mediaType, filename])
    const [cat, dog] = [
      [`rivulet:files/${body.file.id}`, 'image/png', 'cat.png'],
      ['https://example.com/dog.png', 'image/png', ''],
    ]
    expect(history.flatMap(({ parts: [part] }) => shown([part] as typeof parts))).toEqual([cat, dog])
    expect(artifacts.flatMap(({ parts: [part] }) => shown([part] as typeof parts)).slice(0, 2)).toEqual([cat, dog])
    expect(artifacts.map(({ parts: [part] }) => plain(part?.content)).at(-1)).toBe('AAEC')
    await expect(client.sendMessage(sent([url(`rivulet:files/${crypto.randomUUID()}`)], {}, {}))).rejects.toThrow('No such file')
  })

  test('an attempt that does not count leaves nothing', async () => {
    const client = await clientOf('scripted', binding)
    const attempts = { 1: [say(0, 'First '), say(1, 'gone'), rest(20), fail('no')], 2: [say(0, 'Second try')] }
    const chunks = await collect(client.sendMessageStream(message('go', { attempts })))
    expect(fold(chunks).filter(text => text !== '')).toEqual(['Second try'])
    expect(outputOf(await get(client, taskIn(chunks)?.id ?? ''))).toEqual(['Second try'])
  })

  test('what is wrong is an error of the protocol', async () => {
    const client = await clientOf('echo', binding)
    await expect(get(client, crypto.randomUUID())).rejects.toThrow('No such task')
    await expect(get(client, 'no id')).rejects.toThrow('No such task')
    await expect(client.sendMessage(message('x', {}, { contextId: crypto.randomUUID() }))).rejects.toThrow('No such task')
    await expect(client.sendMessage(message('x', {}, { taskId: crypto.randomUUID() }))).rejects.toThrow('No such task')
    const push = { tenant: '', id: 'mine', taskId: '', url: 'https://example.com/hook', token: '', authentication: undefined }
    const pushed = { ...message('x'), configuration: { ...immediately, taskPushNotificationConfig: push } }
    await expect(client.sendMessage(pushed)).rejects.toThrow('Push notifications are webhooks')
  })
})

test('the header decides the revision of a call, and without it the spelling of the method', async () => {
  const { id } = taskOf(await (await clientOf('echo', 'JSONRPC')).sendMessage(message('hi')))
  const read = async (method: string, version?: string): Promise<unknown> => {
    const headers = { 'content-type': 'application/json', ...(version !== undefined && { 'a2a-version': version }) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id } })
    const response = await fetch(`${platform.urls[0]}/a2a/echo`, { method: 'POST', headers, body })
    const { result, error } = (await response.json()) as { result?: { status: { state: string } }; error?: { code: number } }
    return result?.status.state ?? error?.code
  }
  const [modern, legacy] = ['TASK_STATE_COMPLETED', 'completed']
  expect([await read('GetTask'), await read('tasks/get')]).toEqual([modern, legacy])
  expect([await read('GetTask', '1.0'), await read('tasks/get', '1.0')]).toEqual([modern, modern])
  expect([await read('GetTask', '0.3'), await read('tasks/get', '0.3.0')]).toEqual([legacy, legacy])
  expect(await read('GetTask', '2.0')).toBe(-32009)
})

test('what the API does not offer over HTTP+JSON is an error of the protocol', async () => {
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${platform.urls[0]}/a2a/echo/${path}`, init)
    const { error } = (await response.json()) as { error: { code: number; details: { reason: string }[] } }
    return [response.status, error.code, error.details[0]?.reason]
  }
  const push = [400, 400, 'PUSH_NOTIFICATION_NOT_SUPPORTED']
  expect(
    await ask('tasks/1/pushNotificationConfigs', { method: 'POST', headers: { 'content-type': 'application/a2a+json' }, body: '{}' }),
  ).toEqual(push)
  expect(await ask('tasks/1/pushNotificationConfigs?pageSize=1')).toEqual(push)
  expect(await ask('tasks/1/pushNotificationConfigs/2', { method: 'DELETE' })).toEqual(push)
  expect(await ask('extendedAgentCard')).toEqual([400, 400, 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'])
  expect(await ask('tasks', { headers: { 'a2a-version': '0.3' } })).toEqual([400, 400, 'VERSION_NOT_SUPPORTED'])
  expect(await ask('tasks/1/pushNotifications')).toEqual([404, 404, 'METHOD_NOT_FOUND'])
})

test('a stream is resumed after any event, at another API', async () => {
  const client = await clientOf('scripted', 'JSONRPC')
  const given = { ...message('go', { steps: [...steps, rest(3_000), say(4, 'Bye.')] }), configuration: immediately }
  const { id } = taskOf(await client.sendMessage(given))
  const whole = await subscribe(id, 0)
  expect(whole.output).toEqual([...output, 'Bye.'])
  const again = taskOf(
    await client.sendMessage({ ...message('go', { steps: [...steps, rest(5_000), say(4, 'Bye.')] }), configuration: immediately }),
  )
  await until('it speaks', async () => outputOf(await get(client, again.id)).includes('The final word.'))
  // The log never had the last one.
  const cursors = [...(await cursorsOf(again.contextId)), '77-7']
  expect(cursors.length).toBeGreaterThan(8)
  const resumed = await Promise.all(cursors.map((cursor, place) => subscribe(again.id, place % 2, cursor)))
  for (const [place, { output: seen }] of resumed.entries()) expect([cursors[place], seen]).toEqual([cursors[place], [...output, 'Bye.']])
  await wipeLog(platform, again.contextId)
  expect(outputOf(await get(client, again.id))).toEqual([...output, 'Bye.'])
})

test('a stream that is resumed at a place that the log has no longer has the task, and goes on', async () => {
  const { own, turn, place, goOn } = await taskWithGap()
  // The SDK sends no `Last-Event-ID`.
  const fetchImpl: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers)
    headers.set('last-event-id', place)
    return fetch(url, { ...init, headers })
  }
  const transports = [new JsonRpcTransportFactory({ fetchImpl })]
  const client = await new ClientFactory({ transports }).createFromUrl(`${own.urls[1]}/a2a/halting/`, '.well-known/agent-card.json')
  const chunks: StreamResponse[] = []
  const watching = follow(client.resubscribeTask({ tenant: '', id: turn }), chunks)
  await until('it has what was said', () => fold(chunks)[0] === halves[0])
  goOn()
  await watching
  expect(fold(chunks)).toEqual([halves.join('')])
})

test.each(['SIGKILL', 'SIGTERM'] as const)('a stream whose API got %s is broken, and the task goes on at another one', async signal => {
  const own = await startPlatform({ apis: 2, workers: 1 })
  onTestFinished(() => own.close())
  const client = await new ClientFactory().createFromUrl(`${own.urls[1]}/a2a/scripted/`, '.well-known/agent-card.json')
  const chunks: StreamResponse[] = []
  const broken = follow(client.sendMessageStream(message('go', { steps: [repeat(40, say(0, 'word '), rest(50))] })), chunks)
  const given = message('go', { steps: [repeat(40, say(0, 'word '), rest(50))] })
  const waiting = client.sendMessage(given)
  await until('both speak', async () => {
    const { body } = await own.client.get<{ data: { status: string }[] }>('/v1/tasks')
    return String(fold(chunks)[0]).length > 20 && body.data.filter(({ status }) => status === 'running').length === 2
  })
  void own.apis[1]?.kill(signal)
  await Promise.all([expect(broken).rejects.toThrow(), expect(waiting).rejects.toThrow()])
  const other = await new ClientFactory().createFromUrl(`${own.urls[0]}/a2a/scripted/`, '.well-known/agent-card.json')
  const rest40 = await collect(other.resubscribeTask({ tenant: '', id: taskIn(chunks)?.id ?? '' }))
  expect(fold(rest40)).toEqual(['word '.repeat(40)])
  expect(outputOf(taskOf(await other.sendMessage(given)))).toEqual(['word '.repeat(40)])
})

const everything = {
  ...{ tenant: '', contextId: '', status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '' },
  ...{ pageSize: undefined, historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined },
}
const immediately = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, historyLength: undefined, returnImmediately: true }

test('a client that has the card of an agent gets 304', async () => {
  const url = `${platform.urls[0]}/a2a/scripted/.well-known/agent-card.json`
  const etag = (await fetch(url)).headers.get('etag') ?? ''
  const again = await fetch(url, { headers: { 'if-none-match': etag } })
  expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
})

async function clientOf(agent: string, binding: (typeof bindings)[number], api = 0): Promise<Client> {
  const url = `${platform.urls[api]}/a2a/${agent}/`
  if (binding !== '0.3') {
    const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] })
    return new ClientFactory(options).createFromUrl(url, '.well-known/agent-card.json')
  }
  const transports = [new JsonRpcTransportFactory({ legacyCompat: { enabled: true } })]
  const card = (await (await fetch(`${url}.well-known/agent-card.json`)).json()) as { supportedInterfaces: { protocolVersion: string }[] }
  const supportedInterfaces = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3')
  return new ClientFactory({ transports }).createFromAgentCard({ ...card, supportedInterfaces } as never)
}

function message(text: string, params: object = {}, ids: { taskId?: string; contextId?: string } = {}) {
  return sent([{ content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' }], params, ids)
}

function answer({ id: taskId, contextId }: Task, data: object) {
  return sent(
    [{ content: { $case: 'data' as const, value: data }, metadata: undefined, filename: '', mediaType: '' }],
    {},
    { taskId, contextId },
  )
}

function sent(
  parts: NonNullable<Task['history'][number]>['parts'],
  params: object,
  { taskId = '', contextId = '' }: { taskId?: string; contextId?: string },
) {
  const about = { messageId: crypto.randomUUID(), role: Role.ROLE_USER, taskId, contextId }
  const one = { ...about, parts, metadata: undefined, extensions: [], referenceTaskIds: [] }
  return { tenant: '', message: one, configuration: undefined, metadata: { params } }
}

function taskOf(result: unknown): Task {
  return result as Task
}

function get(client: Client, id: string): Promise<Task> {
  return client.getTask({ tenant: '', id, historyLength: undefined })
}

function taskIn(chunks: readonly StreamResponse[]): Task | undefined {
  return chunks.flatMap(({ payload }) => (payload?.$case === 'task' ? [payload.value] : []))[0]
}

function outputOf({ artifacts }: Task): unknown[] {
  return artifacts.map(({ parts }) => plain(parts[0]?.content))
}

function plain(content: { $case: string; value: unknown } | undefined): unknown {
  return content?.$case === 'raw' ? Buffer.from(content.value as Uint8Array).toString('base64') : content?.value
}

/** As A2A defines `append`: a client that keeps the artifacts has these. */
function fold(chunks: readonly StreamResponse[]): unknown[] {
  const artifacts = new Map<string, unknown>()
  for (const { payload } of chunks) {
    if (payload?.$case === 'task')
      for (const { artifactId, parts } of payload.value.artifacts) artifacts.set(artifactId, plain(parts[0]?.content))
    if (payload?.$case !== 'artifactUpdate') continue
    const { artifact, append } = payload.value
    const value = plain(artifact?.parts[0]?.content)
    const id = artifact?.artifactId ?? ''
    artifacts.set(id, append ? `${artifacts.get(id)}${value}` : value)
  }
  return [...artifacts.values()]
}

async function follow(stream: AsyncIterable<StreamResponse>, into: StreamResponse[]): Promise<void> {
  for await (const chunk of stream) into.push(chunk)
}

async function collect(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const chunks: StreamResponse[] = []
  await follow(stream, chunks)
  return chunks
}

type Raw = { task?: { artifacts: RawArtifact[] }; artifactUpdate?: { artifact: RawArtifact; append: boolean } }
type RawArtifact = { artifactId: string; parts: { text?: string; data?: unknown; raw?: string }[] }

/** By hand, because the SDK sends no `Last-Event-ID`. */
async function subscribe(id: string, api: number, cursor?: string): Promise<{ output: unknown[] }> {
  const headers = { 'a2a-version': '1.0', ...(cursor !== undefined && { 'last-event-id': cursor }) }
  const text = await (await fetch(`${platform.urls[api]}/a2a/scripted/tasks/${id}:subscribe`, { headers })).text()
  const artifacts = new Map<string, unknown>()
  for (const { task, artifactUpdate } of dataInStream<Raw>(text)) {
    for (const { artifactId, parts } of task?.artifacts ?? []) artifacts.set(artifactId, valueIn(parts))
    if (!artifactUpdate) continue
    const { artifact, append } = artifactUpdate
    artifacts.set(artifact.artifactId, append ? `${artifacts.get(artifact.artifactId)}${valueIn(artifact.parts)}` : valueIn(artifact.parts))
  }
  return { output: [...artifacts.values()] }
}

function valueIn([part]: RawArtifact['parts']): unknown {
  return part?.text ?? part?.data ?? part?.raw
}

/** Of the events that a viewer has before the task goes on. */
async function cursorsOf(task: string): Promise<string[]> {
  const leaving = new AbortController()
  const response = await fetch(`${platform.urls[0]}/v1/tasks/${task}/events?from=start`, { signal: leaving.signal })
  const reader = response.body?.getReader()
  let text = ''
  while (!text.includes('The final word.')) text += Buffer.from((await reader?.read())?.value ?? []).toString()
  leaving.abort()
  return idsInStream(text)
}
