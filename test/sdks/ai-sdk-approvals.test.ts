/** The AI SDK's tool approvals on a turn that waits: useChat asks, the page responds with the SDK's own response, and the turn goes on. */
import { Chat } from '@ai-sdk/react'
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import type { Wait } from '@rivulet/protocol'
import { toUiMessages } from '@rivulet/views/ai-sdk'
import { defineAgent } from '@rivulet/worker'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
  validateUIMessages,
} from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

const paid: number[] = []
const pay = defineTool({
  name: 'pay',
  description: 'Pays',
  input: z.object({ amount: z.number() }),
  run: ({ amount }) => {
    paid.push(amount)
    return `paid ${amount}`
  },
})
const payer = defineAgent('payer', async turn => {
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.content.type === 'tool_response'
      ? [say('Done.')]
      : [say('I will pay.'), call('pay', { amount: 1 }), call('pay', { amount: 2 })],
  )
  await turn.run({ model, tools: [pay], approve: () => ({ ask: { hold: 0 } }) })
})

test('asks for two approvals at once, goes on when both have a response, and a reloaded page shows the same', async () => {
  await startOwnWorker(platform, [payer])
  const chat = createChat()
  await chat.sendMessage({ text: 'go' })
  expect([chat.status, chat.error]).toEqual(['ready', undefined])
  const asked = toolParts(chat)
  expect(asked.map(({ state }) => state)).toEqual(['approval-requested', 'approval-requested'])
  const reloaded = await historyOf(chat)
  expect(
    reloaded
      .at(-1)
      ?.parts.filter(isToolUIPart)
      .map(({ state }) => state),
  ).toEqual(['approval-requested', 'approval-requested'])
  expect(paid).toEqual([])

  const [first, second] = asked.map(part => part.approval?.id ?? '')
  await chat.addToolApprovalResponse({ id: first ?? '', approved: true })
  await chat.addToolApprovalResponse({ id: second ?? '', approved: false, reason: 'too much' })
  await until('the turn has gone on', () => textOf(chat.lastMessage).includes('Done.') && chat.status === 'ready')
  expect(chat.error).toBeUndefined()
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(textOf(chat.lastMessage)).toBe('I will pay.Done.')
  expect(toolParts(chat)).toMatchObject([
    { state: 'output-available', output: 'paid 1', approval: { approved: true } },
    { state: 'output-denied', approval: { approved: false, reason: 'too much' } },
  ])
  expect(paid).toEqual([1])
  await validateUIMessages({ messages: chat.messages })
  expect(plain((await historyOf(chat)).at(-1)?.parts)).toEqual(plain(chat.lastMessage?.parts))

  await chat.sendMessage({ text: 'thanks' })
  expect(chat.messages).toHaveLength(4)
})

/** As docs/sdks.md shows it. */
function createChat() {
  const name = crypto.randomUUID()
  const answerUrl = (task: string, wait: string) => `${platform.url}/v1/tasks/${task}/waits/${wait}/answer`
  const transport = new DefaultChatTransport({
    api: `${platform.url}/v1/tasks?format=ai-sdk`,
    prepareSendMessagesRequest: async ({ id, messages }) => {
      const last = messages.at(-1)
      const responses =
        last?.role === 'assistant' ? last.parts.filter(isToolUIPart).filter(({ state }) => state === 'approval-responded') : []
      const answers = responses.map(({ approval }) => ({
        wait: String(approval?.id),
        body: { action: approval?.approved ? 'accept' : 'decline', ...(approval?.reason && { comment: approval.reason }) },
      }))
      const final = answers.pop()
      if (!final) return { body: { agent: 'payer', name: id, input: textOf(last) } }
      const task = taskOf(last)
      const headers = { 'content-type': 'application/json' }
      for (const { wait, body } of answers) await fetch(answerUrl(task, wait), { method: 'POST', headers, body: JSON.stringify(body) })
      return { api: `${answerUrl(task, final.wait)}?format=ai-sdk`, body: final.body }
    },
  })
  return new Chat({ id: name, transport, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses })
}

async function historyOf(chat: Chat<UIMessage>): Promise<UIMessage[]> {
  const task = taskOf(chat.lastMessage)
  const { turns } = await platform.client.detail(task)
  const waits: Wait[] = turns.flatMap(turn => turn.waits ?? [])
  return validateUIMessages({ messages: toUiMessages(await platform.client.messages(task), waits) })
}

function toolParts(chat: Chat<UIMessage>) {
  return (chat.lastMessage?.parts ?? []).filter(isToolUIPart)
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('')
}

function taskOf(message: UIMessage | undefined): string {
  return String((message?.metadata as { task?: string } | undefined)?.task)
}

/** Fields that are there and undefined are the same as none. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}
