/** What a run does around the model and its tools: hooks, compaction, tools in the background. */
import { data, toolResponse } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect, lines } from '../../test/collect.ts'
import { exchangesOf, user } from '../model/conversation.ts'
import type { HistoryMessage, ModelRequest } from '../model/model.ts'
import { call, fail, type Script, say } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool } from '../tools/tool.ts'
import { type RunOptions, runAgent } from './run-agent.ts'

const echo = defineTool({ name: 'echo', description: '', input: z.object({ value: z.string() }), run: ({ value }) => value })

describe('the hooks of a tool', () => {
  test('see its call and its result, in this order', async () => {
    const seen: unknown[] = []
    const { responses } = await run([[call('echo', { value: 'a' }, 'c1')], 'done'], {
      beforeTool: given => void seen.push(given),
      afterTool: (given, outcome) => void seen.push([given.callId, outcome]),
    })
    expect(seen).toEqual([{ tool: 'echo', args: { value: 'a' }, callId: 'c1' }, ['c1', { content: 'a', isError: false }]])
    expect(responses).toEqual([toolResponse('c1', 'echo', 'a')])
  })

  test('can change the arguments and the result, and take the place of the tool', async () => {
    const { responses } = await run([[call('echo', { value: 'a' }, 'c1'), call('echo', { value: 'b' }, 'c2')], 'done'], {
      beforeTool: async ({ callId }) => (callId === 'c1' ? { args: { value: 'changed' } } : { result: 'cached' }),
      afterTool: (_, { content }) => ({ content: `${content}!`, isError: false }),
    })
    expect(responses).toEqual([toolResponse('c1', 'echo', 'changed!'), toolResponse('c2', 'echo', 'cached!')])
  })

  test.each(['beforeTool', 'afterTool'] as const)('that throw in %s give the model an error, and the run goes on', async hook => {
    const { responses, result } = await run([[call('echo', { value: 'a' }, 'c1')], 'done'], {
      [hook]: () => {
        throw new Error('not today')
      },
    })
    expect(responses).toEqual([toolResponse('c1', 'echo', 'not today', true)])
    expect(result?.text).toBe('done')
  })
})

describe('a compaction', () => {
  test('sees whole messages only, changes the requests after it, and emits an event', async () => {
    const seen: (readonly HistoryMessage[])[] = []
    const requests: ModelRequest[] = []
    const noting =
      <T>(reply: T) =>
      (request: ModelRequest): T => {
        requests.push(request)
        return reply
      }
    const { updates } = await run(
      [noting([say('first '), call('echo', { value: 'a' })]), noting([call('echo', { value: 'b' })]), noting('end')],
      {
        messages: [user('go'), { author: 'agent', content: user('half').content, status: 'aborted' }],
        compaction: {
          when: (messages, usage) => messages.length > 3 && (usage?.inputTokens ?? 0) > 0,
          run: async messages => {
            seen.push(messages)
            return [user('a summary')]
          },
        },
      },
    )
    expect(seen.map(messages => messages.map(({ content }) => content.type))).toEqual([['text', 'text', 'tool_request', 'tool_response']])
    expect(requests.map(({ messages }) => messages.length)).toEqual([2, 1, 3])
    expect(updates.filter(({ type }) => type === 'custom')).toMatchObject([{ name: 'compaction', data: { before: 4, after: 1 } }])
  })

  test('that fails, fails the run', async () => {
    const { error } = await run(['never'], { compaction: { when: () => true, run: () => Promise.reject(new Error('too long')) } })
    expect(error).toMatchObject({ message: 'too long' })
  })
})

describe('a tool in the background', () => {
  test('has a response at once, and its result is a notice that the model gets before the run ends', async () => {
    const requests: ModelRequest[] = []
    let finish = (_: string) => {}
    const slow = backgroundTool(() => new Promise<string>(resolve => (finish = resolve)))
    const { messages, result, updates } = await run(
      [
        [call('slow', {}, 'c1')],
        request => {
          requests.push(request)
          finish('the result')
          return 'I go on meanwhile.'
        },
        request => {
          requests.push(request)
          return 'Now I know.'
        },
      ],
      { tools: [slow] },
    )
    expect(messages.map(({ content }) => content.type)).toEqual(['tool_request', 'tool_response', 'text', 'data', 'text'])
    expect(messages[1]?.content).toMatchObject({ content: expect.stringContaining('background'), isError: false })
    expect(messages[3]).toMatchObject({
      content: data({ tool: 'slow', callId: 'c1', result: 'the result', isError: false }),
      metadata: { notice: 'background' },
    })
    expect(exchangesOf(requests[1]?.messages ?? []).at(-1)).toMatchObject({ by: 'user' })
    expect(result).toMatchObject({ text: 'Now I know.', steps: 3, stopReason: 'stop' })
    expect(lines(updates)).toContain('custom background_progress')
  })

  test('that fails is a notice of an error', async () => {
    const { messages } = await run([[call('slow', {}, 'c1')], 'waiting', 'sorry'], {
      tools: [backgroundTool(() => Promise.reject(new Error('it broke')))],
    })
    expect(messages.flatMap(({ content }) => (content.type === 'data' ? [content.data] : []))).toEqual([
      { tool: 'slow', callId: 'c1', result: 'it broke', isError: true },
    ])
  })

  test('is aborted when the run fails, and the run ends after it', async () => {
    let ended = false
    const slow = defineTool({
      ...{ name: 'slow', description: '', input: z.object({}), background: true },
      run: (_, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            ended = true
            reject(signal.reason)
          }),
        ),
    })
    const { error } = await run([[call('slow', {})], [fail('the model broke')]], { tools: [slow] })
    expect(error).toMatchObject({ message: expect.stringContaining('the model broke') })
    expect(ended).toBe(true)
  })
})

function backgroundTool(work: () => Promise<string>) {
  return defineTool({
    ...{ name: 'slow', description: '', input: z.object({}), background: true },
    run: (_, { progress }) => {
      progress('begun')
      return work()
    },
  })
}

async function run(script: Script, options: Partial<Omit<RunOptions, 'turn' | 'name'>> = {}) {
  const collected = await collect(runAgent({ tools: [echo], messages: [user('go')], ...options, model: scriptedModel(script) }))
  const messages = collected.result?.messages ?? []
  const responses = messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
  return { ...collected, messages, responses }
}
