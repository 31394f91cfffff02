/**
 * The AI SDK's tool approvals on a turn that waits: useChat asks, the page responds with the SDK's own response, and the turn goes on. The agent is one of
 * ours, or a run of the SDK itself.
 */
import { Chat } from '@ai-sdk/react'
import type { Wait } from '@rivulet/protocol'
import { toUiMessages } from '@rivulet/views/ai-sdk'
import { defineAgent } from '@rivulet/worker'
import { streamWithApprovals } from '@rivulet/worker/ai-sdk'
import {
  DefaultChatTransport,
  isStepCount,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  simulateReadableStream,
  streamText,
  ToolLoopAgent,
  tool,
  type UIMessage,
  validateUIMessages,
} from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { paid, payerOf } from './asking-agents.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

const payer = payerOf(1, 2)

/** How often the model of the SDK was called. */
let calls = 0
const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => {
    calls += 1
    const text = (said: string) => [
      { type: 'text-start' as const, id: '0' },
      { type: 'text-delta' as const, id: '0', delta: said },
      { type: 'text-end' as const, id: '0' },
    ]
    const request = (amount: number) => ({
      ...{ type: 'tool-call' as const, toolCallId: `c${amount}`, toolName: 'pay', input: JSON.stringify({ amount }) },
    })
    const isLast = prompt.at(-1)?.role === 'tool'
    const finish = {
      type: 'finish' as const,
      finishReason: { unified: isLast ? ('stop' as const) : ('tool-calls' as const), raw: '' },
      usage,
    }
    const chunks = isLast ? [...text('Done.'), finish] : [...text('I will pay.'), request(1), request(2), finish]
    return { stream: simulateReadableStream({ chunks: [{ type: 'stream-start' as const, warnings: [] }, ...chunks] }) }
  },
})
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}
const payTool = tool({
  description: 'Pays',
  inputSchema: z.object({ amount: z.number() }),
  needsApproval: true,
  execute: ({ amount }) => {
    paid.push(amount)
    return `paid ${amount}`
  },
})
const ask = { hold: 0, assignee: 'finance' }
const streaming = defineAgent('streaming', async turn => {
  await streamWithApprovals(turn, {
    run: messages => streamText({ model, messages, tools: { pay: payTool }, stopWhen: isStepCount(5), abortSignal: turn.signal }),
    ask,
  })
})
const looping = defineAgent('looping', async turn => {
  const agent = new ToolLoopAgent({ model, tools: { pay: payTool } })
  await streamWithApprovals(turn, { run: messages => agent.stream({ messages, abortSignal: turn.signal }), ask })
})

test.each([
  ['an agent with a policy', payer],
  ['streamText', streaming],
  ['a ToolLoopAgent', looping],
])('%s asks for two approvals at once, goes on when both have a response, and a reloaded page shows the same', async (_, agent) => {
  paid.length = 0
  calls = 0
  await startOwnWorker(platform, [agent])
  const chat = createChat(agent.name)
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
  // The model was called before the wait and after it, and not again when the turn resumed.
  expect(calls).toBe(agent === payer ? 0 : 2)
  await validateUIMessages({ messages: chat.messages })
  expect(plain((await historyOf(chat)).at(-1)?.parts)).toEqual(plain(chat.lastMessage?.parts))

  await chat.sendMessage({ text: 'thanks' })
  expect(chat.messages).toHaveLength(4)
})

/** As docs/sdks.md shows it. */
function createChat(agent: string) {
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
      if (!final) return { body: { agent, name: id, input: textOf(last) } }
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
