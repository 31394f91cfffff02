/** `RivuletChatTransport` in the AI SDK's own `useChat`, with keys: what the page does reaches the task, however the connection behaves. */
import { Chat } from '@ai-sdk/react'
import { RivuletChatTransport } from '@rivulet/client/ai-sdk'
import { defineAgent, text } from '@rivulet/worker'
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createGate } from '../support/gate.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { paid, payerOf } from './asking-agents.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const headers = { authorization: `Bearer ${env.RIVULET_KEY}` }
let platform: Platform
let gate = createGate()

/** Sends what is in its conversation. */
const reader = defineAgent('reader', async turn => {
  const messages = await turn.history()
  const seen = messages.flatMap(({ author, content }) => (author === 'user' ? [content.type === 'text' ? content.text : content.type] : []))
  await turn.send(`${seen.join(', ')} (${turn.number})`)
})

const slow = defineAgent('slow', async turn => {
  await turn.message(text(), async message => {
    for (const word of ['one ', 'two ', 'three ', 'four ']) await message.append(word)
    await gate.opened
    await message.append('five')
  })
})

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0, env })
})
beforeEach(async () => {
  gate = createGate()
  paid.length = 0
  await startOwnWorker(platform, [reader, slow, payerOf(1, 2)], { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY })
})
afterAll(() => platform.close())

test('turns of a chat are turns of one task, and files and data reach the agent', async () => {
  const { chat } = chatWith('reader')
  await chat.sendMessage({ text: 'Hello' })
  const file = { type: 'file' as const, mediaType: 'image/png', filename: 'a.png', url: 'data:image/png;base64,AAEC' }
  await chat.sendMessage({ parts: [{ type: 'text', text: 'Look' }, file, { type: 'data-place', data: { city: 'Oslo' } }] })
  expect([chat.error, textOf(chat.lastMessage)]).toEqual([undefined, 'Hello, Look, media, data (2)'])
})

test('regenerate runs the last turn again, and an earlier one from there', async () => {
  const { chat } = chatWith('reader')
  for (const text of ['One', 'Two']) await chat.sendMessage({ text })
  await chat.regenerate()
  expect([chat.error, texts(chat)]).toEqual([undefined, ['One', 'One (1)', 'Two', 'One, Two (3)']])
  await chat.regenerate({ messageId: chat.messages[1]?.id ?? '' })
  expect([chat.error, texts(chat)]).toEqual([undefined, ['One', 'One (4)']])
})

test('an edited message takes the place of the one before and of all that followed', async () => {
  const { chat } = chatWith('reader')
  for (const text of ['One', 'Two', 'Three']) await chat.sendMessage({ text })
  await chat.sendMessage({ text: 'Zwei', messageId: chat.messages[2]?.id ?? '' })
  expect([chat.error, texts(chat)]).toEqual([undefined, ['One', 'One (1)', 'Zwei', 'One, Zwei (4)']])
  await chat.sendMessage({ text: 'Eins', messageId: chat.messages[0]?.id ?? '' })
  expect([chat.error, texts(chat)]).toEqual([undefined, ['Eins', 'Eins (5)']])
})

test('a person approves one call of the agent, and declines another', async () => {
  const { chat } = chatWith('payer')
  await chat.sendMessage({ text: 'Pay' })
  const approvals = approvalsIn(chat.lastMessage)
  expect(approvals).toHaveLength(2)
  await chat.addToolApprovalResponse({ id: approvals[0] ?? '', approved: true })
  await chat.addToolApprovalResponse({ id: approvals[1] ?? '', approved: false, reason: 'Too much' })
  await until('the agent is done', () => textOf(chat.lastMessage).endsWith('Done.') && chat.status === 'ready')
  expect([chat.error, paid]).toEqual([undefined, [1]])
})

describe('a connection that breaks', () => {
  test.each([20, 60, 120, 180, 240, 300, 360, 420])('after %i bytes is resumed, and doubles nothing', async bytes => {
    const cuts = cutOnce(bytes)
    const { chat } = chatWith('slow', { fetch: cuts.fetch })
    const sent = chat.sendMessage({ text: 'go' })
    await until('the words are there', () => textOf(chat.lastMessage) === 'one two three four ' || chat.status === 'error')
    gate.open()
    await sent
    expect([chat.error, textOf(chat.lastMessage)]).toEqual([undefined, 'one two three four five'])
  })

  test('a request whose response is lost makes one turn', async () => {
    let isLost = false
    const losing: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (init?.method !== 'POST' || isLost) return response
      isLost = true
      await response.body?.cancel()
      throw new TypeError('The response is lost')
    }
    const { chat } = chatWith('reader', { fetch: losing })
    await chat.sendMessage({ text: 'Hello' })
    await chat.sendMessage({ text: 'Again' })
    expect([isLost, texts(chat)]).toEqual([true, ['Hello', 'Hello (1)', 'Again', 'Hello, Again (2)']])
  })
})

test('a page that was reloaded resumes its chat, at another API, and a chat without a task has nothing to resume', async () => {
  const { chat, id } = chatWith('slow')
  const sent = chat.sendMessage({ text: 'go' })
  await until('the first words are there', () => textOf(chat.lastMessage).includes('four'))
  const reloaded = chatWith('slow', { id, url: platform.urls[1] ?? '', messages: structuredClone(chat.messages) }).chat
  const resumed = reloaded.resumeStream()
  gate.open()
  await Promise.all([sent, resumed])
  expect([reloaded.error, reloaded.messages]).toEqual([undefined, chat.messages])
  const fresh = chatWith('slow').chat
  await fresh.resumeStream()
  expect([fresh.error, fresh.messages]).toEqual([undefined, []])
})

test('cancel ends the turn', async () => {
  const { chat, id, transport } = chatWith('slow')
  const sent = chat.sendMessage({ text: 'go' })
  await until('the first words are there', () => textOf(chat.lastMessage).includes('four'))
  await transport.cancel(id)
  await sent
  expect([chat.status, textOf(chat.lastMessage)]).toEqual(['ready', 'one two three four '])
})

type ChatOptions = { id?: string; url?: string; fetch?: typeof fetch; messages?: UIMessage[] }

function chatWith(
  agent: string,
  { id = crypto.randomUUID(), url = platform.urls[0] ?? '', fetch: given, messages = [] }: ChatOptions = {},
) {
  const transport = new RivuletChatTransport({ url, agent, headers, ...(given && { fetch: given }) })
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
  return { chat: new Chat<UIMessage>({ id, transport, messages, sendAutomaticallyWhen }), id, transport }
}

/** The first stream ends after so many bytes, as if its connection broke. */
function cutOnce(bytes: number): { fetch: typeof fetch } {
  let isCut = false
  return {
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      if (isCut || !response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) return response
      isCut = true
      const source = response.body.getReader()
      let left = bytes
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { done, value } = await source.read()
          if (value && left > 0) controller.enqueue(value.subarray(0, left))
          left -= value?.length ?? 0
          if (!done && left > 0) return
          await source.cancel()
          controller.error(new TypeError('The connection broke'))
        },
      })
      return new Response(body, response)
    },
  }
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
}

function texts(chat: Chat<UIMessage>): string[] {
  return chat.messages.map(textOf)
}

function approvalsIn(message: UIMessage | undefined): string[] {
  return (message?.parts ?? []).flatMap(part =>
    part.type === 'dynamic-tool' && part.state === 'approval-requested' ? [part.approval.id] : [],
  )
}
