/** AG-UI's client, unmodified, and our agent for it: runs, tools, interrupts, retries, and threads that are connected to and resumed. */
import { type AgentSubscriber, type BaseEvent, HttpAgent, type Message } from '@ag-ui/client'
import { RivuletAgent } from '@rivulet/client/ag-ui'
import type { Task } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { extend, fail, full, repeat, rest, say } from '../support/agents/scripts.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { idsInStream } from '../support/viewers/stream-text.ts'
import { guide, paid, payerOf, registrar, shopper } from './asking-agents.ts'
import { everyContent } from './every-content.ts'
import { haltingAgent, halves, taskWithGap, wipeLog } from './lost-logs.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

const payer = payerOf(1, 2)

/** Its child emits every type of content; `clerk` is one level below that. */
const editor = defineAgent('editor', async turn => {
  const { text } = await turn.spawn('scout', { agent: 'finder', input: 'look' })
  await turn.send(text)
})
const finder = defineAgent('finder', async turn => {
  const { text } = await turn.spawn('clerk', { agent: 'scripted', params: { steps } })
  await turn.custom('found', { length: text.length })
  await turn.send(`Found: ${text}`)
})

/** Longer than a patch of any other field. */
const note = 'a note '.repeat(20)
const planner = defineAgent('planner', async turn => {
  await turn.state.set({ steps: ['read', 'write'], done: 0, note })
  await turn.state.patch({ done: 1, 'a/b': 1 })
  await turn.state.patch({ done: 2 })
  await turn.send('Planned.')
})

/** The id of a call comes again, as from a model that counts its calls from 0 in each response. */
const steps = everyContent('c1')

const answer = [
  { role: 'reasoning', content: 'Hm \n\nso.' },
  { role: 'assistant', content: 'word word word word word ' },
  { role: 'assistant', toolCalls: [{ function: { name: 'weather', arguments: '{"city":"Oslo"}' } }] },
  { role: 'tool', content: '{"rain":true}' },
  { role: 'assistant', toolCalls: [{ function: { name: 'fail', arguments: '{}' } }] },
  { role: 'tool', content: 'no', metadata: { isError: true } },
  { role: 'activity', activityType: 'data', content: { data: { whole: true } } },
  { role: 'activity', activityType: 'media', content: { mimeType: 'image/png', data: 'AAEC' } },
  { role: 'assistant', content: 'The final word.' },
  { role: 'assistant', content: 'Bye.' },
]

describe('a run', () => {
  test('is streamed, and a second client that connects has the same thread', async () => {
    const agent = agentOf('scripted')
    const { events } = await run(agent, 'go', { steps })
    expect(agent.messages).toMatchObject([{ id: 'u1', role: 'user', content: 'go' }, ...answer])
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    const again = agentOf('scripted', agent.threadId, 1)
    await again.connectAgent()
    expect(sorted(again.messages)).toEqual(sorted(agent.messages))
    await run(agent, 'more', { steps: [say(0, 'More.')] }, 'u2')
    expect(agent.messages.slice(-2)).toMatchObject([{ id: 'u2' }, { content: 'More.' }])
    expect(await tasksOf(agent)).toMatchObject([{ agent: 'scripted', status: 'completed' }])
  })

  test('works with the plain client, several parts, and a history from elsewhere', async () => {
    const agent = new HttpAgent({
      url: `${platform.urls[0]}/ag-ui/echo`,
      initialMessages: [
        { id: 'h1', role: 'user', content: 'One?' },
        {
          id: 'h2',
          role: 'assistant',
          content: 'One.',
          toolCalls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { id: 'h3', role: 'tool', toolCallId: 'x', content: 'ok' },
      ],
    })
    const content: Extract<Message, { role: 'user' }>['content'] = [
      { type: 'image', source: { type: 'data', value: 'AAEC', mimeType: 'image/png' } },
      { type: 'text', text: 'Two?' },
    ]
    agent.addMessage({ id: 'h4', role: 'user', content })
    await agent.runAgent()
    expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Two?' })
    const viewer = agentOf('echo', agent.threadId)
    await viewer.connectAgent()
    expect(viewer.messages).toMatchObject([
      { id: 'h1', content: 'One?' },
      { id: 'h2', content: 'One.' },
      { toolCalls: [{ id: 'x', function: { name: 'f' } }] },
      { id: 'h3', toolCallId: 'x', content: 'ok' },
      { id: 'h4', content },
      { content: 'Two?' },
    ])
  })

  test('that is tried again has the attempt that counts, and nothing of the first', async () => {
    const first = [extend(0, { type: 'reasoning_content', index: 0, text: 'Wrong.' }), say(1, 'First '), rest(20), fail('no')]
    const agent = agentOf('scripted')
    await run(agent, 'go', { attempts: { 1: first, 2: [say(0, 'Second try')] } })
    expect(contentsOf(agent.messages)).toEqual(['go', 'Second try'])
  })

  test('that fails or is canceled says so; notices are custom events', async () => {
    const agent = agentOf('scripted')
    const { events } = await run(agent, 'go', { steps: [{ custom: { name: 'hello', data: { a: 1 } } }, say(0, 'Half'), fail('no luck')] })
    expect(events).toContainEqual(expect.objectContaining({ type: 'CUSTOM', name: 'hello', value: { a: 1 } }))
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'agent_error' })
    const running = agentOf('scripted')
    const outcome = run(running, 'go', { steps: [say(0, 'Half'), rest(60_000)] })
    await until('it speaks', () => running.messages.at(-1)?.content === 'Half')
    const other = agentOf('scripted', running.threadId, 1)
    const watched = collect()
    const watching = other.connectAgent({}, watched.subscriber)
    await until('it is watched', () => other.messages.length === 2)
    running.abortRun()
    await Promise.all([outcome, watching])
    expect(watched.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  })

  test('has the children of its turn as subagents, with what they say, also for a client that connects or resumes anywhere', async () => {
    await startOwnWorker(platform, [editor, finder])
    const agent = agentOf('editor')
    const { events } = await run(agent, 'go')
    const [first, second, ...ends] = events.filter(({ type }) => type.startsWith('SUBAGENT'))
    expect(first).toMatchObject({ type: 'SUBAGENT_STARTED', name: 'scout' })
    expect(second).toMatchObject({ type: 'SUBAGENT_STARTED', name: 'clerk', parentSubagentRunId: first?.subagentRunId })
    expect(ends).toMatchObject(
      [second, first].map(child => ({ type: 'SUBAGENT_FINISHED', subagentRunId: child?.subagentRunId, outcome: { type: 'success' } })),
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'CUSTOM', name: 'found', subagentRunId: first?.subagentRunId }))
    const ofClerk = agent.messages.filter(message => 'subagentRunId' in message && message.subagentRunId === second?.subagentRunId)
    expect(ofClerk).toMatchObject(answer)
    expect(agent.messages.filter(message => !('subagentRunId' in message)).map(({ role }) => role)).toEqual(['user', 'assistant'])
    const [task] = await tasksOf(agent)
    for (const cursor of [undefined, ...(await cursorsOf(task?.id ?? ''))]) {
      const again = agentOf('editor', agent.threadId, 1, cursor === undefined ? {} : { 'last-event-id': cursor })
      await again.connectAgent()
      expect([cursor, sorted(again.messages)]).toEqual([cursor, sorted(agent.messages)])
    }
    // One that comes back keeps what it has, in its order.
    const ids = agent.messages.map(({ id }) => id)
    const lists: string[][] = []
    await agent.connectAgent({}, { onMessagesChanged: ({ messages }) => void lists.push(messages.map(({ id }) => id)) })
    expect(lists.length).toBeGreaterThan(0)
    for (const list of lists) expect(list).toEqual(ids)
    // The next run has the thread of the task alone as its history, and does not import what subagents have said.
    const copy = agentOf('echo')
    copy.setMessages(agent.messages)
    await run(copy, 'next', {}, 'u2')
    const viewer = agentOf('echo', copy.threadId, 1)
    await viewer.connectAgent()
    expect(viewer.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  })

  test('shares the state of its task by a snapshot and patches, and leaves the client its own where the task has none', async () => {
    await startOwnWorker(platform, [planner])
    const agent = agentOf('planner')
    agent.setState({ own: true })
    const { events } = await run(agent, 'go')
    expect(events.flatMap(({ type }) => (type.startsWith('STATE') ? [type] : []))).toEqual(['STATE_SNAPSHOT', 'STATE_DELTA', 'STATE_DELTA'])
    expect(agent.state).toEqual({ steps: ['read', 'write'], done: 2, note, 'a/b': 1 })
    const viewer = agentOf('planner', agent.threadId, 1)
    await viewer.connectAgent()
    expect(viewer.state).toEqual(agent.state)
    const other = agentOf('echo')
    other.setState({ own: true })
    await run(other, 'hi')
    expect(other.state).toEqual({ own: true })
  })

  test('takes and gives files by their ids, also in a thread that is copied from another one', async () => {
    const headers = { 'content-type': 'image/png', 'x-filename': 'cat.png' }
    const { body } = await platform.client.send<{ file: { id: string } }>('POST', '/v1/files', { body: new Uint8Array([1, 2]), headers })
    const { id } = body.file
    const partOf = (source: { value: string; provider?: string }) => ({
      type: 'image' as const,
      source: { type: 'file' as const, mimeType: 'image/png', ...source },
    })
    const content = [partOf({ value: id, provider: 'rivulet' }), { type: 'text' as const, text: 'What is it?' }]
    const drawn = { role: 'activity', activityType: 'media', content: { mimeType: 'image/png', file: id } }
    const agent = agentOf('scripted')
    agent.addMessage({ id: 'u1', role: 'user', content })
    const draw = [full(0, { type: 'media', mimeType: 'image/png', file: id })]
    await agent.runAgent({ forwardedProps: { steps: draw } })
    const viewer = agentOf('scripted', agent.threadId, 1)
    await viewer.connectAgent()
    expect(viewer.messages).toMatchObject([{ id: 'u1', content }, drawn])
    const copy = agentOf('scripted')
    copy.setMessages(viewer.messages)
    await run(copy, 'And now?', { steps: [say(0, 'A cat.')] }, 'u2')
    const other = agentOf('scripted', copy.threadId, 1)
    await other.connectAgent()
    expect(other.messages).toMatchObject([{ id: 'u1', content }, { content: 'And now?' }, { content: 'A cat.' }])
    for (const source of [{ value: crypto.randomUUID() }, { value: id, provider: 'openai' }]) {
      const wrong = agentOf('scripted')
      wrong.addMessage({ id: 'u1', role: 'user', content: [partOf(source)] })
      await expect(wrong.runAgent()).rejects.toMatchObject({ status: 400 })
    }
  })

  test('is sent once, even if its request is repeated', async () => {
    const agent = agentOf('echo')
    agent.addMessage({ id: 'u1', role: 'user', content: 'hi' })
    await agent.runAgent({ runId: 'r1' })
    const again = agentOf('echo', agent.threadId)
    again.addMessage({ id: 'u1', role: 'user', content: 'hi' })
    await again.runAgent({ runId: 'r1' })
    expect(again.messages.map(({ content }) => content)).toEqual(['hi', 'hi'])
    const [task] = await tasksOf(agent)
    expect(await platform.client.messages(task?.id ?? '')).toHaveLength(2)
  })
})

describe('a broken connection', () => {
  test('is resumed after any event, at another API, and lacks nothing and doubles nothing', async () => {
    const whole = agentOf('scripted')
    await run(whole, 'go', { steps })
    const [task] = await tasksOf(whole)
    const cursors = await cursorsOf(task?.id ?? '')
    for (const [place, cursor] of cursors.entries()) {
      const agent = agentOf('scripted', whole.threadId, place % 2, { 'last-event-id': cursor })
      await agent.connectAgent()
      expect([cursor, sorted(agent.messages)]).toEqual([cursor, sorted(whole.messages)])
    }
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)('of a run whose API got %s goes on', async signal => {
    const own = await startPlatform({ apis: 2, workers: 1 })
    onTestFinished(() => own.close())
    const agent = new RivuletAgent({ url: `${own.urls[1]}/ag-ui/scripted` })
    agent.addMessage({ id: 'u1', role: 'user', content: 'go' })
    const broken = agent.runAgent({ forwardedProps: { steps: [repeat(40, say(0, 'word '), rest(50))] } })
    await until('it speaks', () => String(agent.messages.at(-1)?.content).length > 20)
    void own.apis[1]?.kill(signal)
    await expect(broken).rejects.toThrow()
    agent.url = `${own.urls[0]}/ag-ui/scripted`
    await agent.connectAgent()
    expect(agent.messages.map(({ content }) => content)).toEqual(['go', 'word '.repeat(40)])
  })

  test('resumed at a place that the log never had gives the thread while it runs', async () => {
    const agent = agentOf('scripted')
    const running = run(agent, 'go', { steps: [...steps, rest(500)] })
    await until('it speaks', () => agent.messages.length > 2)
    const viewer = agentOf('scripted', agent.threadId, 1, { 'last-event-id': '77-7' })
    await Promise.all([running, viewer.connectAgent()])
    expect(sorted(viewer.messages)).toEqual(sorted(agent.messages))
  })

  test('after which the log is gone gives the thread as it is stored', async () => {
    const agent = agentOf('scripted')
    await run(agent, 'go', { steps })
    const [{ id } = { id: '' }] = await tasksOf(agent)
    await wipeLog(platform, id)
    const viewer = agentOf('scripted', agent.threadId, 1, { 'last-event-id': '2-3' })
    const seen = collect()
    await viewer.connectAgent({}, seen.subscriber)
    expect(sorted(viewer.messages)).toEqual(sorted(agent.messages))
    expect(seen.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  })

  test('resumed after the log was lost while the run goes on gives all of the thread, as to a client that stayed', async () => {
    const { agent: halting, goOn } = haltingAgent()
    await startOwnWorker(platform, [halting])
    const agent = agentOf('halting')
    const running = run(agent, 'go')
    await until('it speaks', () => agent.messages.at(-1)?.content === halves[0])
    const [{ id } = { id: '' }] = await tasksOf(agent)
    const cursor = (await platform.log(id)).at(-1)?.cursor ?? ''
    await wipeLog(platform, id)
    const viewer = agentOf('halting', agent.threadId, 1, { 'last-event-id': cursor })
    const watching = viewer.connectAgent()
    goOn(1)
    await Promise.all([running, watching])
    for (const { messages } of [agent, viewer]) expect(contentsOf(messages)).toEqual(['go', halves.join('')])
  })

  test('resumed at a place that the log has no longer gives the thread, and the run that goes on', async () => {
    const { own, name, place, goOn } = await taskWithGap()
    const viewer = new RivuletAgent({ url: `${own.urls[1]}/ag-ui/halting`, threadId: name, headers: { 'last-event-id': place } })
    const watching = viewer.connectAgent()
    await until('it has what was said', () => contentsOf(viewer.messages).at(-1) === halves[0])
    goOn()
    await watching
    expect(contentsOf(viewer.messages)).toEqual(['one', halves.join(''), 'two', halves.join('')])
  })
})

describe('a turn that waits', () => {
  test('interrupts its run for approvals, and goes on with both responses', async () => {
    await startOwnWorker(platform, [payer])
    const agent = agentOf('payer')
    const { events } = await run(agent, 'go')
    expect(events.slice(-2).map(({ type }) => type)).toEqual(['MESSAGES_SNAPSHOT', 'RUN_FINISHED'])
    const [first, second] = agent.pendingInterrupts
    const calls = agent.messages.flatMap(message => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
    expect([first?.reason, first?.toolCallId, second?.toolCallId]).toEqual(['tool_call', calls[0]?.id, calls[1]?.id])
    const viewer = agentOf('payer', agent.threadId, 1)
    await viewer.connectAgent()
    expect(viewer.pendingInterrupts).toEqual(agent.pendingInterrupts)
    await agent.runAgent({
      resume: [
        { interruptId: first?.id ?? '', status: 'resolved', payload: { approved: true, editedArgs: { amount: 3 } } },
        { interruptId: second?.id ?? '', status: 'resolved', payload: { approved: false, reason: 'too much' } },
      ],
    })
    expect(agent.pendingInterrupts).toEqual([])
    expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Done.' })
    expect(agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
    expect(paid).toEqual([3])
    // The viewer responds to interrupts that are closed already: its run shows the rest of the turn.
    await viewer.runAgent({ resume: viewer.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' })) })
    expect(sorted(viewer.messages)).toEqual(sorted(agent.messages))
  })

  test('interrupts its run for a form; a wrong answer leaves it open', async () => {
    await startOwnWorker(platform, [registrar])
    const agent = agentOf('registrar')
    await run(agent, 'go')
    const [asked] = agent.pendingInterrupts
    expect(asked).toMatchObject({
      reason: 'input_required',
      message: 'Who are you?',
      responseSchema: { properties: { name: { type: 'string' } } },
    })
    const entry = { interruptId: asked?.id ?? '', status: 'resolved' as const }
    await expect(agent.runAgent({ resume: [{ ...entry, payload: { name: 1 } }] })).rejects.toMatchObject({ status: 400 })
    await agent.runAgent({ resume: [{ ...entry, payload: { name: 'Ada' } }] })
    expect(agent.messages.at(-1)).toMatchObject({ content: 'accept {"name":"Ada"}' })
  })

  test('takes the result of a tool that the client runs', async () => {
    await startOwnWorker(platform, [shopper])
    const agent = agentOf('shopper')
    const { events } = await run(agent, 'go')
    const calls = agent.messages.flatMap(message => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
    expect(events.at(-1)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: [calls[0]?.id] } })
    agent.addMessage({ id: 'own', role: 'tool', toolCallId: calls[0]?.id ?? '', content: '"Oslo"' })
    await agent.runAgent()
    expect(agent.messages.at(-1)).toMatchObject({ content: 'You are in "Oslo".' })
    expect(agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(1)
  })

  test('takes the result of a tool that the run has brought', async () => {
    await startOwnWorker(platform, [guide])
    const agent = agentOf('guide')
    const tools = [{ name: 'gps', description: 'Where I am', parameters: { type: 'object', properties: {} } }]
    agent.addMessage({ id: 'u1', role: 'user', content: 'go' })
    await agent.runAgent({ tools })
    const [asked] = agent.messages.flatMap(message => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
    expect(asked?.function.name).toBe('gps')
    agent.addMessage({ id: 'own', role: 'tool', toolCallId: asked?.id ?? '', content: '"Oslo"' })
    await agent.runAgent({ tools })
    expect(agent.messages.at(-1)).toMatchObject({ content: 'You are in "Oslo".' })
  })
})

test('a thread that does not exist is empty, and what the API refuses is an error', async () => {
  const agent = agentOf('echo')
  await agent.connectAgent()
  expect(agent.messages).toEqual([])
  const none = agentOf('no-such-agent')
  await expect(run(none, 'go')).rejects.toMatchObject({ status: 422 })
  expect((await fetch(`${platform.urls[0]}/ag-ui/echo/threads/none`)).status).toBe(404)
})

function agentOf(name: string, threadId: string = crypto.randomUUID(), api = 0, headers: Record<string, string> = {}): RivuletAgent {
  return new RivuletAgent({ url: `${platform.urls[api]}/ag-ui/${name}`, threadId, headers })
}

async function run(agent: RivuletAgent, content: string, params: Record<string, unknown> = {}, id = 'u1') {
  const seen = collect()
  agent.addMessage({ id, role: 'user', content })
  await agent.runAgent({ forwardedProps: params }, seen.subscriber)
  return seen
}

function collect(): { events: BaseEvent[]; subscriber: AgentSubscriber } {
  const events: BaseEvent[] = []
  return { events, subscriber: { onEvent: ({ event }) => void events.push(event) } }
}

/** Without an empty reasoning, which only takes the place of others. */
function contentsOf(messages: readonly Message[]): unknown[] {
  return messages.flatMap(({ role, content }) => (role === 'reasoning' && content === '' ? [] : [content]))
}

/** Without the progress of calls, which is not stored. */
function sorted(messages: readonly Message[]): Message[] {
  const kept = messages.filter(
    message =>
      (message.role !== 'activity' || message.activityType !== 'tool-progress') && (message.role !== 'reasoning' || message.content !== ''),
  )
  return kept.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

async function tasksOf({ threadId }: RivuletAgent): Promise<Task[]> {
  return (await platform.client.get<{ data: Task[] }>(`/v1/tasks?name=${threadId}`)).body.data
}

async function cursorsOf(task: string): Promise<string[]> {
  return idsInStream(await (await fetch(`${platform.urls[0]}/v1/tasks/${task}/events?from=start`)).text())
}
