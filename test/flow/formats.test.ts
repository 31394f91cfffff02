/** The views of a whole task over HTTP: each is a stream that can be joined, cut and resumed like our own. */
import type { StreamFormat } from '@rivulet/contract/fields'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { done, full, repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { type FormatFrame, type ReadOptions, readFormat } from '../support/viewers/format-reader.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2 })
})
afterAll(() => platform.close())

type Chunk = Record<string, unknown> & { type: string; content?: { type: string; content: string }; delta?: { text_delta?: string } }

type ViewFormat = Exclude<StreamFormat, 'ai-sdk'>
/** The text of a chunk in each format. */
const textOf: Record<ViewFormat, (chunk: Chunk) => unknown> = {
  agentex: ({ type, content, delta }: Chunk) => (type === 'delta' ? delta?.text_delta : type === 'start' ? content?.content : ''),
  agentkit: ({ type, chunk }: Chunk) => (type === 'AppendText' ? chunk : ''),
  'coding-agent': ({ type, text }: Chunk) => (type === 'assistant_text_delta' ? text : ''),
  'mini-claw-code': ({ type, text }: Chunk) => (type === 'TextDelta' ? text : ''),
}
const call = { type: 'tool_request', callId: 'c', name: 'now', arguments: { utc: true } }
const result = { type: 'tool_response', callId: 'c', name: 'now', content: { hour: 12 }, isError: false }
const steps = [full(0, call), full(1, result), repeat(6, say(2, 'word '), rest(20)), done(2)]
const words = 'word '.repeat(6)

describe.each(Object.keys(textOf) as ViewFormat[])('%s', format => {
  test('streams a task from its creation to its end', async () => {
    const live = listen(`/v1/tasks?format=${format}`, { body: scripted(steps) })
    expect(await live.closed).toBe('ended')
    expect(live.headers()).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8' })
    expect(live.frames.find(({ event }) => event === 'turn')?.data).toMatch(/"turn":1,"attempt":1\}$/)
    expect(live.text()).toBe(words)
    expect(live.frames.at(-1)).toMatchObject({ event: 'end', data: expect.stringContaining('"status":"completed"') })
    const again = listen(live.eventsPath(), { after: live.frames.at(-1)?.id ?? '' })
    await again.closed
    expect(again.status()).toBe(204)
  })

  test('resumes at every id: what follows a cursor comes once, and a part of an event comes again with its turn', async () => {
    const { task } = await platform.client.createTask(scripted(steps))
    const whole = listen(`/v1/tasks/${task.id}/events?format=${format}&from=start`)
    await whole.closed
    for (const [place, { id }] of whole.frames.slice(0, -1).entries()) {
      const more = listen(`/v1/tasks/${task.id}/events?format=${format}`, { after: id ?? '' })
      expect(await more.closed).toBe('ended')
      if (id === whole.frames.at(-1)?.id) expect(more.status()).toBe(204)
      else if (!id?.endsWith('+')) expect(more.frames).toEqual(whole.frames.slice(place + 1))
      else {
        expect(more.frames[0]?.event).toBe('turn')
        expect(more.text()).toBe(words)
      }
    }
  })

  test('a viewer that joins late has the whole task, as has one whose cursor is lost', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'half '), rest(600), say(0, 'whole')], { input: 'go' }))
    const early = listen(`/v1/tasks/${task.id}/events?format=${format}`)
    await early.until(() => early.text().startsWith('half '))
    const late = listen(`/v1/tasks/${task.id}/events?format=${format}`)
    const lost = listen(`/v1/tasks/${task.id}/events?format=${format}`, { after: '0-7' })
    for (const viewer of [early, late, lost]) {
      expect(await viewer.closed).toBe('ended')
      expect(viewer.frames.at(-1)?.event).toBe('end')
      expect(viewer.text()).toBe('half whole')
    }
    const ended = listen(`/v1/tasks/${task.id}/events?format=${format}`)
    expect(await ended.closed).toBe('ended')
    expect(ended.text()).toBe('half whole')
  })

  test('a turn that is canceled ends, and its text stays', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'half '), rest(60_000)]))
    const viewer = listen(`/v1/tasks/${task.id}/events?format=${format}`)
    await viewer.until(() => viewer.text() === 'half ')
    await platform.client.cancel(task.id)
    expect(await viewer.closed).toBe('ended')
    expect(viewer.text()).toBe('half ')
    expect(viewer.frames.at(-1)?.data).toContain('"status":"canceled"')
    const late = listen(`/v1/tasks/${task.id}/events?format=${format}`)
    await late.closed
    expect(late.text()).toBe('half ')
  })

  test('a stream that follows has the next turn, and an API that stops breaks the connection', async () => {
    const api = await platform.startApi()
    const { task } = await platform.client.createTask(scripted([say(0, 'first ')]))
    const viewer = listen(`${api.url}/v1/tasks/${task.id}/events?format=${format}&follow=true`)
    await viewer.until(() => viewer.text() === 'first ')
    await platform.client.waitForEnd(task.id)
    await platform.client.post(`/v1/tasks/${task.id}/turns`, { params: { steps: [say(0, 'second')] } })
    await viewer.until(() => viewer.text() === 'first second')
    expect(viewer.frames.filter(({ event }) => event !== null).map(({ event }) => event)).toEqual(['turn', 'turn'])
    await api.kill('SIGTERM')
    expect(await viewer.closed).toBe('broken')
  })

  test('a turn in a query is rejected, because the format covers the task', async () => {
    const { task } = await platform.client.createTask(scripted([]))
    const reply = await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/events?format=${format}&turn=1`)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'validation_failed'])
  })

  function listen(path: string, options?: ReadOptions) {
    const reader = readFormat(path.startsWith('http') ? path : `${platform.url}${path}`, options)
    const chunks = (frames: FormatFrame[]) => frames.filter(({ event }) => event === null).map(({ data }): Chunk => JSON.parse(data))
    return {
      ...reader,
      /** What a client has: when a turn comes again, its text is dropped. */
      text: () =>
        chunks(reader.frames.slice(firstNeeded(reader.frames)))
          .map(textOf[format])
          .join(''),
      eventsPath: () => `/v1/tasks/${JSON.parse(reader.frames.at(-1)?.data ?? '{}').task}/events?format=${format}`,
    }
  }
})

test.each(['format=agentex2', 'format=', 'format=agentex&format=agentkit', 'format=agentex&after=1-1%2B%2B', 'after=1-1%2B'])(
  'GET with %s is rejected',
  async query => {
    const { task } = await platform.client.createTask(scripted([]))
    const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/events?${query}`)
    expect([status, body.error.code]).toEqual([400, query.includes('after') ? 'bad_cursor' : 'validation_failed'])
  },
)

test('the description of the API lists the formats', async () => {
  type Parameter = { name: string; schema: { enum?: string[] } }
  const { body } = await platform.client.get<{ paths: Record<string, Record<string, { parameters: Parameter[] }>> }>('/openapi.json')
  const parameter = body.paths['/v1/tasks/{id}/events']?.get?.parameters.find(({ name }) => name === 'format')
  expect(parameter?.schema.enum).toEqual(['ai-sdk', ...Object.keys(textOf)])
})

/** The first frame that no later start of the same turn makes void. */
function firstNeeded(frames: FormatFrame[]): number {
  const first = frames.find(({ event }) => event === 'turn')
  return first ? frames.findLastIndex(({ event, data }) => event === 'turn' && JSON.parse(data).turn === JSON.parse(first.data).turn) : 0
}
