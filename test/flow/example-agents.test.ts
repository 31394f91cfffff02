/** The agents that `npm start` brings along, driven from outside: what a viewer folds is what is stored, and it shows what each is an example of. */
import { type Content, type Event, emptyState, messagesOf, type Task } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { startProcess } from '../support/platform/platform-process.ts'
import { foldFrame, isLogged, type Viewer, watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  // No provider: the scripted stand-ins answer.
  platform = await startPlatform({ env: { OPENAI_API_KEY: '', OPENAI_BASE_URL: '' } })
})
afterAll(() => platform.close())

test('each of them is listed with what it does', async () => {
  const { body } = await platform.client.get<{ data: { name: string; description: string }[] }>('/v1/agents')
  expect(body.data.map(({ name }) => name).sort()).toEqual(['assistant', 'cited', 'clerk', 'echo', 'researcher', 'scout', 'scripted'])
  for (const { description } of body.data) expect(description).not.toBe('')
})

test.each(['', 'off'])(
  'a worker without files and with RIVULET_EXAMPLE_AGENTS=%j names what is missing, and exits with 1',
  async setting => {
    const worker = startProcess('worker', 'worker without agents', {
      ...{ REDIS_URL: 'redis://127.0.0.1:1', RIVULET_URL: platform.url, RIVULET_EXAMPLE_AGENTS: setting, AGENT_FILES: '' },
    })
    expect(await worker.exited).toEqual({ code: 1, signal: null })
    expect(worker.lines.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/^This worker has no agents: name files with agents.* or set RIVULET_EXAMPLE_AGENTS=on/),
    ])
  },
)

test('the assistant thinks, calls its tool, and replies with the result', async () => {
  const { contents } = await watched('assistant', 'What is 12 * (3 + 4)?')
  expect(contents.map(({ type }) => type)).toEqual(['reasoning', 'text', 'tool_request', 'tool_response', 'text'])
  expect(contents[3]).toMatchObject({ name: 'calculate', content: { result: 84 }, isError: false })
  expect(contents[4]).toMatchObject({ text: '12 * (3 + 4) = 84.' })
})

test('the assistant goes on with a conversation', async () => {
  const { task } = await watched('assistant', 'What is 2 + 2?')
  await platform.client.addTurn(task, { input: 'And 3 * 3?' })
  await platform.client.waitForEnd(task)
  expect((await platform.client.messages(task)).at(-1)?.content).toMatchObject({ text: '3 * 3 = 9.' })
  expect(await faultsOf(platform, task)).toEqual([])
})

test('viewers of cited read along, and then have the text with sources in its place', async () => {
  const { viewer, events, contents, messages } = await watched('cited', 'What happens to slow viewers?')
  const places = events.flatMap(({ type }, place) => (type === 'message.replaced' ? [place] : []))
  expect(places).toHaveLength(1)
  expect(events.slice(0, places[0]).filter(({ type }) => type === 'message.delta').length).toBeGreaterThan(3)

  const before = viewer.frames().filter(isLogged).slice(0, places[0]).reduce(foldFrame, emptyState)
  const streamed = messagesOf(before).at(-1)
  expect(streamed).toMatchObject({ status: 'streaming', content: { text: expect.stringContaining('once for all its viewers. [1]') } })
  expect(streamed?.content).not.toMatchObject({ text: expect.stringContaining('Sources:') })

  expect(contents).toEqual([
    { type: 'text', format: 'markdown', text: expect.stringContaining('once for all its viewers. [[1]](README.md)') },
  ])
  expect(contents[0]).toMatchObject({ text: expect.stringContaining('Sources:\n\n1. [Slow viewers](README.md)') })
  expect(messages.at(-1)?.metadata).toMatchObject({
    sources: expect.arrayContaining([{ number: 1, title: 'Slow viewers', url: 'README.md' }]),
  })
})

test('viewers of the scout see it think, and several calls at once, each with its progress', async () => {
  const { events, contents } = await watched('scout', 'What happens to slow viewers, and how does a cancel work?')
  expect(contents.filter(({ type }) => type === 'reasoning')).toHaveLength(3)
  expect(mostOpenCalls(events)).toBeGreaterThan(1)
  const progress = events.flatMap(event => (event.type === 'message.delta' && event.delta.type === 'data' ? [event.delta.value] : []))
  expect(progress).toContainEqual({ read: 1, of: 3 })
  expect(contents.at(-1)).toMatchObject({ text: expect.stringMatching(/Slow viewers: [\s\S]*Cancel is a fence: /) })
})

test('the researcher is a parent of three scouts, and reports what they found', async () => {
  const { task, events, contents } = await watched('researcher', 'What happens to slow viewers, and how does a cancel work?')
  expect(contents.at(-1)).toMatchObject({ text: expect.stringMatching(/Slow viewers: [\s\S]*Cancel is a fence: /) })
  const children = events.flatMap(event => (event.type === 'child.started' ? [event.child] : []))
  expect(children).toHaveLength(3)
  const { body } = await platform.client.get<{ data: Task[] }>(`/v1/tasks?parent=${task}`)
  expect(body.data.map(({ id, agent, status }) => [id, agent, status]).sort()).toEqual(
    children.toSorted().map(id => [id, 'scout', 'completed']),
  )
})

/** Runs one task with a viewer from the start; the judge may find no fault. */
async function watched(agent: string, input: string) {
  const { task } = await platform.client.createTask({ agent, input })
  const viewer: Viewer = watch(task.id, { urls: platform.urls, query: '?from=start' })
  expect(await faultsOfViewers(platform, [viewer])).toEqual([])
  expect(await faultsOf(platform, task.id)).toEqual([])
  const { turns } = await platform.client.detail(task.id)
  expect(turns).toMatchObject([{ status: 'completed', attempt: 1, stopReason: 'stop' }])
  const messages = await platform.client.messages(task.id)
  expect(messagesOf(viewer.state())).toEqual(messages)
  const contents: Content[] = messages.filter(({ author }) => author === 'agent').map(({ content }) => content)
  const events = viewer
    .frames()
    .filter(isLogged)
    .map(({ data }) => data as Event)
  return { task: task.id, viewer, events, contents, messages }
}

function mostOpenCalls(events: readonly Event[]): number {
  const open = new Set<number>()
  const counts = events.map(event => {
    if (event.type === 'message.started' && event.content.type === 'tool_response') open.add(event.index)
    if (event.type === 'message.replaced' || event.type === 'message.finished') open.delete(event.index)
    return open.size
  })
  return Math.max(...counts)
}
