import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect, lines } from '../../test/collect.ts'
import { runAgent } from '../loop/run-agent.ts'
import { call, say } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool } from '../tools/tool.ts'
import { chatModel } from './chat-model.ts'
import { user } from './conversation.ts'

const messages = [user('go')]
const look = defineTool({ name: 'look', description: '', input: z.object({ at: z.string() }), run: ({ at }) => `seen ${at}` })

describe('a function as a model', () => {
  test('may return text, or yield it in pieces', async () => {
    const whole = await collect(chatModel(() => 'All at once.').stream({ messages }))
    const pieces = await collect(
      chatModel(async function* () {
        yield 'All '
        yield 'at once.'
      }).stream({ messages }),
    )
    expect(lines(whole.updates)).toEqual(['0 start text', '0 text All at once.', '0 done stop'])
    expect(lines(pieces.updates)).toEqual(lines(whole.updates))
    expect(pieces.updates).toHaveLength(4)
    expect(whole.result).toMatchObject({ text: 'All at once.', stopReason: 'stop' })
  })

  test('gives the loop the same messages as a model that streams', async () => {
    const plain = chatModel(async ({ messages: { length } }) => {
      if (length > 1) return { text: 'I saw it.', usage: { outputTokens: 3 } }
      return { text: 'Let me look. ', toolCalls: [{ callId: 'c1', name: 'look', arguments: { at: 'the sky' } }] }
    })
    const streamed = scriptedModel([[say('Let me look. '), call('look', { at: 'the sky' }, 'c1')], 'I saw it.'])
    const [one, other] = await Promise.all([plain, streamed].map(model => runAgent({ model, tools: [look], messages }).result))
    expect(one?.messages.map(({ content }) => content)).toEqual(other?.messages.map(({ content }) => content))
    const contents = one?.messages.map(({ content }) => content)
    expect(contents).toContainEqual(expect.objectContaining({ type: 'tool_request', callId: 'c1', arguments: { at: 'the sky' } }))
    expect(contents).toContainEqual(expect.objectContaining({ type: 'tool_response', callId: 'c1', content: 'seen the sky' }))
    expect(one).toMatchObject({ steps: 2, stopReason: 'stop', usage: { outputTokens: 3 } })
  })

  test('fails with what it throws, and keeps the text before it', async () => {
    const model = chatModel(async function* () {
      yield 'half'
      throw new Error('it broke')
    })
    const { error, updates } = await collect(model.stream({ messages }))
    expect(error).toMatchObject({ message: 'it broke', partial: { text: 'half' } })
    expect(lines(updates).at(-1)).toBe('0 done failed error')
  })

  test('that is aborted ends without an error', async () => {
    const abort = new AbortController()
    const model = chatModel(async function* (_, { signal }) {
      yield 'half'
      abort.abort()
      await new Promise((_, reject) =>
        signal.aborted ? reject(signal.reason) : signal.addEventListener('abort', () => reject(signal.reason)),
      )
    })
    const { result, error } = await collect(model.stream({ messages }, { signal: abort.signal }))
    expect(error).toBeUndefined()
    expect(result).toMatchObject({ text: 'half', stopReason: 'aborted' })
  })
})
