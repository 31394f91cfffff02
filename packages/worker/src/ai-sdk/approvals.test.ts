import { user } from '@rivulet/agent'
import { describe, expect, test } from 'vitest'
import { defineAgent } from '../define-agent.ts'
import { testTurn } from '../testing/index.ts'
import { type AiSdkConversation, streamWithApprovals } from './index.ts'

/** The shapes follow the types of `ai` 7; test/sdks runs the SDK itself. */
type Part = { type: string; [field: string]: unknown }

const callOf = (amount: number) => ({ toolCallId: `c${amount}`, toolName: 'pay', input: { amount } })
const requestFor = (amount: number) => ({ type: 'tool-approval-request', approvalId: `a${amount}`, toolCall: callOf(amount) })

describe('a run of the AI SDK with approvals', () => {
  test('asks for all of a stretch at once, and the next stretch gets the responses after the stored messages', async () => {
    const { seen, agent } = payer([
      [
        ...text('I will pay.'),
        { type: 'tool-call', ...callOf(1) },
        { type: 'tool-call', ...callOf(2) },
        requestFor(1),
        { ...requestFor(2), reason: 'above the limit' },
        { type: 'tool-approval-request', approvalId: 'auto', toolCall: callOf(3), isAutomatic: true },
      ],
      [
        { type: 'tool-output-denied', toolCallId: 'c2', toolName: 'pay' },
        { type: 'tool-result', toolCallId: 'c1', toolName: 'pay', output: 'paid 1' },
        ...text('Done.'),
      ],
    ])
    const answer = ({ callId }: { callId?: string | undefined }) =>
      callId === 'c1' ? {} : ({ action: 'decline', comment: 'too much' } as const)
    const { waits, messages, status } = await testTurn(agent, { input: 'pay', history: [user('hello')], answer })
    expect(status).toBe('completed')
    expect(waits).toMatchObject([
      { name: 'ai-sdk 1/approval 1.1', kind: 'approval', tool: 'pay', callId: 'c1', arguments: { amount: 1 }, assignee: 'finance' },
      { name: 'ai-sdk 1/approval 1.2', callId: 'c2', detail: 'above the limit', actions: ['accept', 'decline'] },
    ])
    expect(seen[0]).toMatchObject([{ role: 'user', content: [{ text: 'hello' }, { text: 'pay' }] }])
    expect(seen[1]?.slice(1)).toEqual([
      { role: 'assistant', content: 'response 1' },
      {
        role: 'tool',
        content: [
          { type: 'tool-approval-response', approvalId: 'a1', approved: true },
          { type: 'tool-approval-response', approvalId: 'a2', approved: false, reason: 'too much' },
        ],
      },
    ])
    expect(messages.map(({ content }) => content)).toMatchObject([
      { text: 'I will pay.' },
      { type: 'tool_request', callId: 'c1' },
      { type: 'tool_request', callId: 'c2' },
      { type: 'tool_response', callId: 'c2', content: 'Denied: too much', isError: true },
      { type: 'tool_response', callId: 'c1', content: 'paid 1', isError: false },
      { text: 'Done.' },
    ])
  })

  test('repeats no stretch in the next attempt, and returns the text of the last one', async () => {
    const texts: string[] = []
    const { seen, agent } = payer([[{ type: 'tool-call', ...callOf(1) }, requestFor(1)], text('Done.')], (result, attempt) => {
      texts.push(result)
      if (attempt === 1) throw new Error('again')
    })
    const { attempts } = await testTurn(agent, { attempts: 2, answer: () => ({}) })
    expect({ attempts, texts, runs: seen.length }).toEqual({ attempts: 2, texts: ['Done.', 'Done.'], runs: 2 })
  })

  test('two runs of one turn have stretches and questions of their own', async () => {
    const agent = defineAgent('twice', async turn => {
      for (const amount of [1, 2]) {
        const stretches = [[{ type: 'tool-call', ...callOf(amount) }, requestFor(amount)], text('Done.')]
        await streamWithApprovals(turn, { messages: [], run: () => resultOf(stretches.shift() ?? [], 1) })
      }
    })
    const { waits } = await testTurn(agent, { answer: () => ({}) })
    expect(waits.map(({ name }) => name)).toEqual(['ai-sdk 1/approval 1.1', 'ai-sdk 2/approval 1.1'])
  })
})

function payer(stretches: Part[][], after: (text: string, attempt: number) => void = () => {}) {
  const seen: AiSdkConversation[] = []
  const agent = defineAgent('payer', async turn => {
    const result = await streamWithApprovals(turn, {
      run: async messages => {
        seen.push(messages)
        return resultOf(stretches[seen.length - 1] ?? [], seen.length)
      },
      ask: { assignee: 'finance' },
    })
    after(result, turn.attempt)
  })
  return { seen, agent }
}

function resultOf(parts: Part[], number: number) {
  async function* fullStream() {
    yield* parts
  }
  return { fullStream: fullStream(), responseMessages: Promise.resolve([{ role: 'assistant', content: `response ${number}` }]) }
}

function text(said: string): Part[] {
  return [
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', text: said },
    { type: 'text-end', id: '0' },
  ]
}
