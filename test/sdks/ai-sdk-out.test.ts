/** The AI SDK's own readers on our stream: what useChat shows is what the agent said, however the connection behaves. */
import { Chat } from '@ai-sdk/react'
import { toUiMessages } from '@rivulet/views/ai-sdk'
import {
  DefaultChatTransport,
  readUIMessageStream,
  safeValidateUIMessages,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
  validateUIMessages,
} from 'ai'
import { createParser } from 'eventsource-parser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { done, extend, fail, full, repeat, rest, type Step, say, scripted, start } from '../support/agents/scripts.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

const steps: Step[] = [
  extend(0, { type: 'reasoning_content', index: 0, text: 'Hm ' }),
  rest(5),
  extend(0, { type: 'reasoning_content', index: 0, text: 'so.' }),
  done(0),
  repeat(5, say(1, 'word '), rest(5)),
  done(1),
  start(2, { type: 'tool_request', callId: 'c1', name: 'weather', arguments: {} }),
  extend(2, { type: 'tool_request', text: '{"city":' }),
  rest(5),
  extend(2, { type: 'tool_request', text: '"Oslo"}' }),
  done(2),
  start(3, { type: 'tool_response', callId: 'c1', name: 'weather', content: null, isError: false }),
  extend(3, { type: 'data', value: 'asking' }),
  rest(5),
  extend(3, { type: 'data', value: { rain: true } }),
  done(3),
  full(4, { type: 'data', data: { whole: true } }),
  extend(5, { type: 'media', bytes: 'AAEC' }),
  done(5),
  say(6, 'A draft'),
  rest(5),
  full(6, { type: 'text', text: 'The final word.', format: 'plain' }),
  full(7, { type: 'text', text: 'Bye.', format: 'plain' }),
]

/** A model that counts its calls from 0 in each response, one that gives them no ids, and a call that is closed after its answer. */
const reusedIds: Step[] = [
  full(8, { type: 'tool_request', callId: 'c1', name: 'again', arguments: { n: 2 } }),
  full(9, { type: 'tool_response', callId: 'c1', name: 'again', content: 'no', isError: true }),
  full(10, { type: 'tool_request', callId: '', name: 'x\n\ndata: [DONE]', arguments: {} }),
  full(11, { type: 'tool_response', callId: '', name: '', content: [1], isError: false }),
  start(12, { type: 'tool_request', callId: 'constructor', name: '__proto__', arguments: {} }),
  extend(12, { type: 'tool_request', text: '{}' }),
  full(13, { type: 'tool_response', callId: 'constructor', name: '__proto__', content: 1, isError: false }),
  done(12),
]

const parts = [
  { type: 'reasoning', text: 'Hm so.', state: 'done' },
  { type: 'text', text: 'word word word word word ', state: 'done' },
  {
    type: 'dynamic-tool',
    toolName: 'weather',
    toolCallId: 'c1',
    state: 'output-available',
    input: { city: 'Oslo' },
    output: { rain: true },
  },
  { type: 'data-json', data: { whole: true } },
  { type: 'file', mediaType: 'application/octet-stream', url: 'data:application/octet-stream;base64,AAEC' },
  { type: 'text', text: 'The final word.', state: 'done' },
  { type: 'text', text: 'Bye.', state: 'done' },
]

describe('useChat', () => {
  test('shows an answer as it comes, and the next one beside it', async () => {
    const { chat, seen } = createChat(steps)
    await chat.sendMessage({ text: 'go' })
    expect(chat.error).toBeUndefined()
    expect(chat.status).toBe('ready')
    const [question, reply] = chat.messages
    expect(question).toMatchObject({ role: 'user', parts: [{ type: 'text', text: 'go' }] })
    expect(reply).toMatchObject({ role: 'assistant', parts })
    expect(seen.size).toBeGreaterThan(3)

    await chat.sendMessage({ text: 'and again' })
    const [, , , second] = chat.messages
    expect(chat.messages).toHaveLength(4)
    expect(second).toMatchObject({ role: 'assistant', parts })
    const task = taskOf(reply)
    expect(reply?.id).toBe(`${task}:1`)
    expect(second?.id).toBe(`${task}:2`)
    const stored = await platform.client.messages(task)
    expect(stored.map(({ content }) => content).filter(({ type }) => type === 'text')).toMatchObject([
      ...[{ text: 'go' }, { text: parts[1]?.text }, { text: 'The final word.' }, { text: 'Bye.' }],
      ...[{ text: 'and again' }, { text: parts[1]?.text }, { text: 'The final word.' }, { text: 'Bye.' }],
    ])
  })

  test.each([40, 400, 900, 1_500, 2_500])('resumes an answer that was cut after %i bytes, and doubles nothing', async bytes => {
    const { chat } = createChat(steps, cutOnce(bytes))
    await chat.sendMessage({ text: 'go' })
    expect(chat.status).toBe('error')
    await chat.resumeStream()
    expect(chat.error).toBeUndefined()
    expect(chat.messages).toHaveLength(2)
    expect(chat.lastMessage).toMatchObject({ role: 'assistant', parts })
  })

  test('goes on with what a page that was reloaded has, at another API', async () => {
    const { chat, name } = createChat([say(0, 'Slowly '), rest(1_500), say(0, 'now.')])
    const sent = chat.sendMessage({ text: 'go' })
    await until('the first word is there', () => textOf(chat.lastMessage).includes('Slowly'))
    const reloaded = createChat([], fetch, { name, messages: structuredClone(chat.messages), url: platform.urls[1] ?? '' }).chat
    await reloaded.resumeStream()
    await sent
    expect(reloaded.messages).toEqual(chat.messages)
    expect(textOf(reloaded.lastMessage)).toBe('Slowly now.')
  })

  test('begins with what is stored, and that is what a page which stayed open shows', async () => {
    const { chat, name } = createChat([...steps, ...reusedIds])
    await chat.sendMessage({ text: 'go' })
    const stored = await historyOf(taskOf(chat.lastMessage))
    expect(plain(stored.map(withoutIds))).toEqual(plain(chat.messages.map(withoutIds)))
    expect(stored.at(-1)?.id).toBe(chat.lastMessage?.id)

    const reloaded = createChat([say(0, 'More.')], fetch, { name, messages: stored }).chat
    await reloaded.sendMessage({ text: 'more' })
    expect(reloaded.error).toBeUndefined()
    expect(reloaded.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(textOf(reloaded.lastMessage)).toBe('More.')
  })

  test('begins with half of an answer that is stored, and goes on with it', async () => {
    const { chat, name } = createChat([full(0, { type: 'data', data: 1 }), say(1, 'Slowly '), rest(1_500), say(1, 'now.')])
    const sent = chat.sendMessage({ text: 'go' })
    await until('the first word is there', () => textOf(chat.lastMessage).includes('Slowly'))
    const reloaded = createChat([], fetch, { name, messages: await historyOf(taskOf(chat.lastMessage)) }).chat
    expect(textOf(reloaded.lastMessage)).toBe('Slowly ')
    await reloaded.resumeStream()
    await sent
    expect(reloaded.messages).toHaveLength(2)
    expect(reloaded.lastMessage).toEqual(chat.lastMessage)
  })

  test('says that a turn failed, and that one was canceled', async () => {
    const failing = createChat([say(0, 'Half'), fail('no luck')]).chat
    await failing.sendMessage({ text: 'go' })
    expect(failing.status).toBe('error')
    expect(failing.error?.message).toBe('no luck')
    expect(textOf(failing.lastMessage)).toBe('Half')

    const { chat } = createChat([say(0, 'Half'), rest(60_000)])
    const sent = chat.sendMessage({ text: 'go' })
    await until('it speaks', () => textOf(chat.lastMessage) === 'Half')
    await platform.client.cancel(taskOf(chat.lastMessage))
    await sent
    expect(chat.status).toBe('ready')
    expect(textOf(chat.lastMessage)).toBe('Half')
  })

  test('shows only the attempt that counts', async () => {
    const attempts = { 1: [say(0, 'Wrong'), rest(50), fail('again')], 2: [say(0, 'Right')] }
    const { chat, seen } = createChat([], fetch, { params: { attempts }, maxAttempts: 2 })
    await chat.sendMessage({ text: 'go' })
    expect(chat.status).toBe('ready')
    expect(chat.lastMessage?.parts).toMatchObject([{ type: 'text', text: 'Right' }])
    expect([...seen]).toContain('Wrong')
  })
})

test('the check for UI messages is one that can fail', async () => {
  const broken: unknown[] = [{ id: 'a', role: 'assistant', parts: [{ type: 'dynamic-tool', toolCallId: 'c', state: 'no such state' }] }]
  expect(await safeValidateUIMessages({ messages: broken })).toMatchObject({ success: false })
})

describe('the stream', () => {
  test('resumed by the cursor after any chunk gives the same message', async () => {
    const { task } = await platform.client.createTask(scripted(steps))
    await platform.client.waitForEnd(task.id)
    const whole = await frames(task.id, '?format=ai-sdk&from=start')
    expect(whole.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
    expect(whole.frames.at(-1)).toEqual({ data: '[DONE]' })
    const said = whole.frames.slice(0, -1)
    const log = new Set((await platform.log(task.id)).map(({ cursor }) => String(cursor)))
    expect(said.every(({ id }) => id === undefined || log.has(id))).toBe(true)
    expect((await messageOf(said)).parts).toMatchObject(parts)
    for (const [place] of said.entries()) {
      const heard = said.slice(0, place + 1)
      const cursor = heard.findLast(({ id }) => id)?.id
      if (!cursor || place === said.length - 1) continue
      const { frames: more } = await frames(task.id, '?format=ai-sdk', cursor)
      expect((await messageOf([...heard, ...more.slice(0, -1)])).parts).toMatchObject(parts)
    }
    const last = said.at(-1)?.id ?? ''
    const over = await fetch(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk`, { headers: { 'last-event-id': last } })
    expect(over.status).toBe(204)
  })

  test('every chunk is one that the SDK knows', async () => {
    const { task } = await platform.client.createTask(scripted([{ custom: { name: 'progress', data: 1 } }, ...steps]))
    const { frames: said } = await frames(task.id, '?format=ai-sdk')
    const { validate } = uiMessageChunkSchema()
    for (const { data } of said.slice(0, -1)) expect(await validate?.(JSON.parse(data))).toMatchObject({ success: true })
  })
})

type ChatOptions = { name?: string; messages?: UIMessage[]; url?: string; params?: object; maxAttempts?: number }

/** As docs/sdks.md shows it: the chat's id is the task's name. */
function createChat(script: Step[], fetching: typeof fetch = fetch, options: ChatOptions = {}) {
  const { name = crypto.randomUUID(), messages = [], url = platform.url, params = { steps: script }, maxAttempts = 1 } = options
  const transport = new DefaultChatTransport({
    api: `${url}/v1/tasks?format=ai-sdk`,
    fetch: fetching,
    prepareSendMessagesRequest: ({ id, messages: all }) => ({
      body: { agent: 'scripted', name: id, input: textOf(all.at(-1)), params, maxAttempts },
    }),
    prepareReconnectToStreamRequest: async ({ id }) => {
      const reply = await fetch(`${url}/v1/tasks?agent=scripted&name=${encodeURIComponent(id)}`)
      const { data } = (await reply.json()) as { data: { id: string }[] }
      return { api: `${url}/v1/tasks/${data[0]?.id}/events?format=ai-sdk` }
    },
  })
  const chat = new Chat({ id: name, messages, transport })
  const seen = new Set<string>()
  chat['~registerMessagesCallback'](() => seen.add(textOf(chat.lastMessage)))
  return { chat, name, seen }
}

/** The first answer breaks off after so many bytes, as a network does. */
function cutOnce(bytes: number): typeof fetch {
  let isCut = false
  return async (input, init) => {
    const response = await fetch(input, init)
    if (isCut || !response.body) return response
    isCut = true
    let left = bytes
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new TypeError('network error'))
      },
      flush: controller => controller.error(new TypeError('network error')),
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
}

type Frame = { id?: string; data: string }

async function frames(task: string, query: string, after?: string): Promise<{ frames: Frame[]; headers: Headers }> {
  const said: Frame[] = []
  const parser = createParser({ onEvent: ({ id, data }) => said.push({ ...(id !== undefined && { id }), data }) })
  const response = await fetch(`${platform.url}/v1/tasks/${task}/events${query}`, { headers: after ? { 'last-event-id': after } : {} })
  parser.feed(await response.text())
  return { frames: said, headers: response.headers }
}

async function messageOf(said: Frame[]): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const { data } of said) controller.enqueue(JSON.parse(data))
      controller.close()
    },
  })
  let last: UIMessage | undefined
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message
  if (!last) throw new Error('Nothing was said')
  return last
}

/** As docs/sdks.md shows it. */
async function historyOf(task: string): Promise<UIMessage[]> {
  const stored: UIMessage[] = toUiMessages(await platform.client.messages(task))
  return validateUIMessages({ messages: stored })
}

/** What a user said has the id that the page gave it. */
function withoutIds({ role, parts: said }: UIMessage): Pick<UIMessage, 'role' | 'parts'> {
  const [text] = said
  return role === 'user' && text?.type === 'text' ? { role, parts: [{ type: 'text', text: text.text }] } : { role, parts: said }
}

/** Fields that are there and undefined are the same as none. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('')
}

function taskOf(message: UIMessage | undefined): string {
  return String((message?.metadata as { task?: string } | undefined)?.task)
}
