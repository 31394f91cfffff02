import { agentTool, call, defineTool, say, scriptedModel, user } from '@rivulet/agent'
import { toModelMessages } from '@rivulet/agent/ai-sdk'
import { data, delta, RivuletError, text } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent } from '../define-agent.ts'
import { testTurn } from './test-turn.ts'

const count = defineTool({ name: 'count', description: '', input: z.object({ text: z.string() }), run: ({ text }) => text.length })
const counter = defineAgent('counter', async turn => void (await turn.run({ model: scriptedModel(['unused']), tools: [count] })))

describe('a turn in a test', () => {
  test('gets its input, its history and its params, and returns its messages and its log', async () => {
    const agent = defineAgent({
      name: 'greeter',
      params: z.object({ polite: z.boolean().default(true) }),
      run: async turn => {
        const history = await turn.history()
        await turn.send(`${turn.params.polite ? 'Dear ' : ''}${turn.text}, message ${history.length} of turn ${turn.number}`)
        await turn.custom('greeted', { name: turn.text })
      },
    })
    const { status, text: said, messages, events, attempts } = await testTurn(agent, { input: 'Ada', history: [user('hello')], params: {} })
    expect({ status, said, attempts }).toEqual({ status: 'completed', said: 'Dear Ada, message 2 of turn 2', attempts: 1 })
    expect(messages).toMatchObject([{ index: 2, author: 'agent', status: 'complete' }])
    expect(events.map(({ type }) => type)).toEqual(['turn.started', 'message.replaced', 'custom', 'turn.finished'])
  })

  test('runs a generator as a worker does', async () => {
    const agent = defineAgent('words', async function* () {
      yield delta(0, 'one ')
      yield delta(0, 'two')
    })
    expect(await testTurn(agent)).toMatchObject({ status: 'completed', text: 'one two', stopReason: 'stop' })
  })

  test('uses the given model in place of the one that the agent runs', async () => {
    const model = scriptedModel([[say('Let me see. '), call('count', { text: 'abc' })], 'Three.'])
    const { text: said, messages } = await testTurn(counter, { input: 'how long is abc?', model })
    expect(said).toBe('Let me see. Three.')
    expect(messages.map(({ content }) => content)).toContainEqual(expect.objectContaining({ type: 'tool_response', content: 3 }))
  })

  test('has the state of the task, and begins each attempt with what stood before it', async () => {
    const agent = defineAgent('keeper', async turn => {
      const before = await turn.state.get<{ n: number }>()
      await turn.step(`add ${turn.text}`, () => turn.state.patch({ n: (before?.n ?? 0) + 1 }))
      await turn.state.patch({ [`attempt ${turn.attempt}`]: true })
      if (turn.attempt === 1) throw new Error('again')
    })
    const { state, attempts, events } = await testTurn(agent, { input: 'x', state: { n: 1 }, attempts: 2 })
    expect({ state, attempts }).toEqual({ state: { n: 2, 'attempt 2': true }, attempts: 2 })
    const told = events.flatMap(event => (event.type === 'state.changed' ? [event.value === undefined ? 'patch' : 'value'] : []))
    expect(told).toEqual(['value', 'patch', 'value', 'patch'])
    const tooLarge = defineAgent('large', turn => turn.state.set('x'.repeat(1024 * 1024)))
    expect(await testTurn(tooLarge)).toMatchObject({ status: 'failed', error: { code: 'state_too_large' }, state: null })
  })

  test('has the children that the test plays, also as tools, and the same ones in a retry', async () => {
    const agent = defineAgent('editor', async turn => {
      const { text: found } = await turn.spawn('look', { agent: 'scout', input: 'here' })
      const refused = await turn.spawn('check', { agent: 'critic' })
      await turn.run({
        model: scriptedModel([[call('scout', { input: 'there' })], 'Done.']),
        tools: [agentTool('scout', { description: '' })],
      })
      if (turn.attempt === 1) throw new Error('again')
      await turn.send(`${found}, ${refused.status}: ${refused.error?.message}`)
    })
    const asked: unknown[] = []
    const { messages, waits } = await testTurn(agent, {
      attempts: 2,
      child: ({ agent: name, input }) => {
        asked.push(input)
        return name === 'critic' ? { status: 'failed', error: { code: 'agent_error', message: 'no' } } : `seen ${input}`
      },
    })
    expect(asked).toEqual(['here', undefined, 'there'])
    expect(messages.map(({ content }) => content)).toMatchObject([
      { type: 'tool_request' },
      { type: 'tool_response', content: 'seen there', isError: false },
      { text: 'Done.' },
      { text: 'seen here, failed: no' },
    ])
    expect(waits.map(({ kind, name }) => [kind, name])).toEqual([
      ['task', 'look'],
      ['task', 'check'],
      ['task', 'run 1/tool 1.1'],
    ])
  })

  test('that fails is a result with what was thrown', async () => {
    const agent = defineAgent('failing', async turn => {
      turn.message(text('half'))
      throw new Error('a secret')
    })
    const { status, error, messages } = await testTurn(agent)
    expect({ status, error }).toEqual({ status: 'failed', error: { code: 'agent_error', message: 'The agent failed', detail: 'a secret' } })
    expect(messages).toMatchObject([{ status: 'failed', content: text('half') }])
  })

  test('with params that do not fit the schema of the agent fails', async () => {
    const agent = defineAgent({ name: 'strict', params: z.object({ city: z.string() }), run: async () => {} })
    expect(await testTurn(agent, { params: { city: 3 } })).toMatchObject({ status: 'failed', error: { code: 'validation_failed' } })
  })

  test('is tried again as often as it may be, and takes its steps once', async () => {
    let orders = 0
    const agent = defineAgent('steps', async turn => {
      const order = await turn.step('order', async () => {
        await turn.send('ordering')
        orders += 1
        return orders
      })
      if (turn.attempt < 3) throw new Error('not yet')
      await turn.send(`order ${order}, attempt ${turn.attempt}`)
    })
    const { status, messages, attempts } = await testTurn(agent, { attempts: 3 })
    expect({ status, attempts, orders }).toEqual({ status: 'completed', attempts: 3, orders: 1 })
    expect(messages.map(({ content }) => content)).toEqual([text('ordering'), text('order 1, attempt 3')])
    expect(await testTurn(agent, { attempts: 2 })).toMatchObject({ status: 'failed', attempts: 2 })
  })

  test('is not tried again after an error that a retry cannot change', async () => {
    const agent = defineAgent('refusing', () => Promise.reject(new RivuletError('validation_failed', 'Name a city')))
    const { attempts, error } = await testTurn(agent, { attempts: 3 })
    expect({ attempts, error }).toEqual({ attempts: 1, error: { code: 'validation_failed', message: 'Name a city' } })
  })

  test('gets responses to its waits, and sleeps no time', async () => {
    const agent = defineAgent('asking', async turn => {
      await turn.sleep('pause', { for: '3d' })
      const { action, content } = await turn.ask('amount', { title: 'How much?', schema: z.object({ amount: z.number() }) })
      const paid = await turn.waitFor<{ paid: boolean }>('payment')
      await turn.send(data({ action, amount: content?.amount ?? 0, ...paid }))
    })
    const { messages, waits } = await testTurn(agent, {
      answer: wait => ({ content: wait.kind === 'event' ? { paid: true } : { amount: 7 } }),
    })
    expect(messages.map(({ content }) => content)).toEqual([data({ action: 'accept', amount: 7, paid: true })])
    expect(waits.map(({ name, status }) => [name, status])).toEqual([
      ['pause', 'expired'],
      ['amount', 'answered'],
      ['payment', 'answered'],
    ])
    expect(await testTurn(agent)).toMatchObject({ status: 'failed', error: { code: 'bad_call' } })
  })

  test('reads the given files, and those that it has sent', async () => {
    const agent = defineAgent('files', async turn => {
      const read = await (await turn.readFile('a')).bytes()
      const { id } = await turn.sendFile(read, { mimeType: 'text/plain', name: 'copy.txt' })
      await turn.send(`${(await turn.readFile(id)).size} bytes`)
    })
    const bytes = new TextEncoder().encode('hello')
    const { text: said, messages } = await testTurn(agent, { files: { a: { bytes, mimeType: 'text/plain' } } })
    expect(said).toBe('5 bytes')
    expect(messages[0]?.content).toMatchObject({ type: 'media', name: 'copy.txt', size: 5 })
  })

  test('has the bytes of pictures and PDFs in its history on demand, in the form that models of the AI SDK take', async () => {
    const files = {
      a: { bytes: new Uint8Array([0, 1, 2]), mimeType: 'image/png' },
      b: { bytes: new Uint8Array([3]), mimeType: 'text/csv' },
    }
    const history = Object.entries(files).map(([file, { mimeType }]) => ({
      author: 'user' as const,
      content: { type: 'media' as const, mimeType, file, name: `the ${file}` },
    }))
    const prompts: unknown[] = []
    const agent = defineAgent('shown', async turn => {
      for (const withFiles of [true, false]) prompts.push(toModelMessages(await turn.history({ withFiles })))
    })
    await testTurn(agent, { history, files })
    const named = (file: string, type: string) => ({ type: 'text', text: `[file the ${file}, ${type}]` })
    const picture = { type: 'file', mediaType: 'image/png', data: 'AAEC', filename: 'the a' }
    expect(prompts).toEqual([
      [{ role: 'user', content: [picture, named('b', 'text/csv')] }],
      [{ role: 'user', content: [named('a', 'image/png'), named('b', 'text/csv')] }],
    ])
  })

  test('that is canceled keeps what it said, as aborted', async () => {
    const cancel = new AbortController()
    const agent = defineAgent('endless', async turn => {
      turn.message(text('half'))
      cancel.abort()
      await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason)))
    })
    const { status, stopReason, messages } = await testTurn(agent, { signal: cancel.signal, attempts: 3 })
    expect({ status, stopReason }).toEqual({ status: 'canceled', stopReason: 'aborted' })
    expect(messages.filter(message => message.status !== 'aborted')).toEqual([])
  })
})
