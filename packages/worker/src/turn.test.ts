/** The ways in which a handler speaks, over one writer and a log that takes everything. */
import { type Claim, delta, done, type Message, start, text, toolRequest } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { endOf } from './auto-send.ts'
import { createTurn, type Turn } from './turn.ts'
import { createTurnWriter, type TurnWriter } from './turn-writer.ts'

const task = '01890000-0000-7000-8000-000000000000'

describe('autoSend', () => {
  test('numbers its messages from 0, wherever the turn stands, and answers what it sent', async () => {
    const { turn, messages } = open()
    await turn.send('before')
    const sent = await turn.autoSend([start(0, text('a')), delta(0, 'b'), start(1, toolRequest('c', 'add')), done(0)])
    expect(messages().map(({ index, status }) => [index, status])).toEqual([
      [0, 'complete'],
      [1, 'complete'],
      [2, 'complete'],
    ])
    expect(sent).toMatchObject({ text: 'ab', toolCalls: [{ callId: 'c', name: 'add', arguments: {} }], stopReason: 'tool_use' })
    expect(sent.messages.map(({ index }) => index)).toEqual([1, 2])
  })

  test('a stream that throws leaves its messages failed, and the error is the caller’s', async () => {
    const { turn, messages } = open()
    const stream = async function* () {
      yield delta(0, 'half')
      throw new Error('the model hung up')
    }
    await expect(turn.autoSend(stream())).rejects.toThrow('the model hung up')
    expect(messages()).toMatchObject([
      { status: 'failed', content: text('half'), error: { code: 'agent_error', message: 'the model hung up' } },
    ])
  })

  test('a message cannot come before the one before it', async () => {
    const { turn } = open()
    await expect(turn.autoSend([delta(0, 'a'), delta(2, 'c')])).rejects.toMatchObject({ code: 'index_out_of_order' })
  })
})

describe('a message by hand', () => {
  test('takes text as what fits its content', async () => {
    const { turn } = open()
    const data = turn.message({ type: 'data', data: null })
    await data.append('{"a":')
    await data.append('1}')
    await data.finish()
    expect(data.current()).toMatchObject({ status: 'complete', content: { type: 'data', data: { a: 1 } } })
    const thought = turn.message({ type: 'reasoning', summary: [], content: [] })
    await thought.append('hm')
    expect(thought.current().content).toEqual({ type: 'reasoning', summary: [], content: ['hm'] })
  })

  test('refuses what comes after its close', async () => {
    const { turn } = open()
    const message = turn.message(text('a'))
    await message.finish()
    for (const late of [() => message.append('b'), () => message.replace('c'), () => message.finish(), () => message.setMetadata({})])
      await expect(late()).rejects.toMatchObject({ code: 'message_closed' })
    expect(message.current().content).toEqual(text('a'))
  })

  test('leaving its scope closes it once: complete, or failed with what was thrown', async () => {
    const { turn, messages } = open()
    expect(await turn.message(text(), async message => message.append('well').then(() => 'result'))).toBe('result')
    await expect(turn.message(text('so'), () => Promise.reject(new Error('oh')))).rejects.toThrow('oh')
    await turn.message(text(), async message => message.finish({ stopReason: 'length' }))
    expect(messages()).toMatchObject([
      { status: 'complete', content: text('well') },
      { status: 'failed', content: text('so'), error: { message: 'oh' } },
      { status: 'complete', stopReason: 'length' },
    ])
  })
})

describe('history', () => {
  test('leaves out what did not complete, unless asked', async () => {
    const past = (['complete', 'failed', 'aborted'] as const).map((status, index) => message(index, { status }))
    const { turn } = open(past)
    expect((await turn.history()).map(({ index }) => index)).toEqual([0])
    expect((await turn.history({ includeUnfinished: true })).map(({ index }) => index)).toEqual([0, 1, 2])
  })
})

describe('how messages ended', () => {
  test('as the last one says that says anything; usage adds up', () => {
    const messages = [
      message(0, { stopReason: 'tool_use', usage: { inputTokens: 1 } }),
      message(1, { stopReason: 'length', usage: { inputTokens: 2, outputTokens: 3 } }),
      message(2, {}),
    ]
    expect(endOf(messages)).toEqual({ stopReason: 'length', usage: { inputTokens: 3, outputTokens: 3 } })
  })

  test('else in a tool that was asked for and not answered, or simply', () => {
    const asked = message(0, { content: toolRequest('c', 'add') })
    const answered = message(1, { content: { type: 'tool_response', callId: 'c', name: 'add', content: 3, isError: false } })
    expect(endOf([])).toEqual({ stopReason: 'stop' })
    expect(endOf([asked])).toEqual({ stopReason: 'tool_use' })
    expect(endOf([asked, answered])).toEqual({ stopReason: 'stop' })
  })
})

function open(past: Message[] = []): { turn: Turn; messages: TurnWriter['messages'] } {
  const writer = createTurnWriter({
    turn: { task, turn: 1, attempt: 1, firstIndex: 0 },
    epoch: 2,
    appender: { append: async () => 'ok' },
    askReopen: async () => null,
    onFenced: () => {},
    onLost: () => {},
  })
  const claim = { task: { id: task, params: null }, turn: { number: 1 }, attempt: 1 } as Claim
  const turn = createTurn({ claim, writer, signal: new AbortController().signal, log: silent, loadHistory: async () => past })
  return { turn, messages: writer.messages }
}

function message(index: number, fields: Partial<Message>): Message {
  const common = { task, index, turn: 1, attempt: 1, author: 'agent', content: text(), metadata: {}, status: 'complete' } as const
  return { ...common, createdAt: '2026-01-01T00:00:00.000Z', ...fields }
}

const silent: Turn['log'] = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
