/** The ways in which a handler speaks, over one writer and a log that takes everything. */
import type { Claim } from '@rivulet/contract/internal'
import { delta, done, endOf, type Message, start, text, toolRequest } from '@rivulet/protocol'
import { newTraceparent, plainSpan } from '@rivulet/runtime/trace'
import { describe, expect, test } from 'vitest'
import { noChildren, noWaits } from '../../test/no-waits.ts'
import { createTurnWriter, type TurnWriter } from '../writer/turn-writer.ts'
import { createTurn, type Turn } from './turn.ts'
import { turnOver } from './turn-over.ts'
import { createAsk } from './waits/ask.ts'

const task = '01890000-0000-7000-8000-000000000000'

describe('autoSend', () => {
  test('numbers its messages from 0, at any index of the task, and returns the sent messages', async () => {
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
      { status: 'failed', content: text('half'), error: { code: 'agent_error', message: 'The agent failed' } },
    ])
  })

  test('what says nothing takes no place: another message may come first, and stays its own', async () => {
    const { turn, messages } = open()
    const opened = gate()
    const stream = async function* () {
      yield delta(0, '')
      await opened.promise
      yield delta(0, 'streamed')
    }
    const sent = turn.autoSend(stream())
    await new Promise(setImmediate)
    const byHand = turn.message(text('by '))
    opened.resolve()
    expect((await sent).text).toBe('streamed')
    await byHand.append('hand')
    expect(messages().map(({ content }) => content)).toEqual([text('by hand'), text('streamed')])
  })

  test('its indexes are mapped by first appearance, so a stream numbers its messages as it likes', async () => {
    const { turn, messages } = open()
    await turn.send('before')
    const { messages: sent } = await turn.autoSend([
      delta(7, 'a'),
      delta(2, 'b'),
      delta(0, ''),
      delta(7, 'a'),
      delta(900, 'c'),
      done(2),
      done(5),
    ])
    expect(sent.map(({ index }) => index)).toEqual([1, 2, 3])
    expect(messages().map(({ content }) => content)).toEqual([text('before'), text('aa'), text('b'), text('c')])
  })
})

describe('a message by hand', () => {
  test('is closed where its block ends, complete, whether the block throws or not', async () => {
    const { turn, messages } = open()
    const write = async (last: string) => {
      await using message = turn.message(text('a'))
      await message.append('b')
      if (last === 'throw') throw new Error('of the block')
      await message.append(last)
    }
    await write('c')
    await expect(write('throw')).rejects.toThrow('of the block')
    expect(messages()).toMatchObject([
      { status: 'complete', content: text('abc') },
      { status: 'complete', content: text('ab') },
    ])
  })

  test('that is disposed of when its turn is over hides no error of its block', async () => {
    const { turn, writer, messages } = open()
    const write = async () => {
      await using message = turn.message(text('a'))
      writer.stop(turnOver('lost'))
      await message.append('b')
    }
    await expect(write()).rejects.toMatchObject({ code: 'turn_over', message: expect.stringContaining('(lost)') })
    expect(messages()).toMatchObject([{ status: 'streaming', content: text('a') }])
  })

  test('that is closed stays as it is at the end of its block', async () => {
    const { turn, messages } = open()
    const write = async () => {
      await using message = turn.message(text('draft'))
      await message.replace('whole')
    }
    await write()
    expect(messages()).toMatchObject([{ status: 'complete', content: text('whole') }])
  })

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

  test('rejects writes after its close', async () => {
    const { turn } = open()
    const message = turn.message(text('a'))
    await message.finish()
    for (const late of [() => message.append('b'), () => message.replace('c'), () => message.finish(), () => message.setMetadata({})])
      await expect(late()).rejects.toMatchObject({ code: 'message_closed' })
    expect(message.current().content).toEqual(text('a'))
  })

  test('may have metadata and a scope', async () => {
    const { turn, messages } = open()
    const result = await turn.message(text('a'), { metadata: { kind: 'x' } }, async message => message.append('b').then(() => 7))
    expect(result).toBe(7)
    expect(messages()).toMatchObject([{ content: text('ab'), metadata: { kind: 'x' }, status: 'complete' }])
  })

  test('leaving its scope closes it once: complete, or failed with what was thrown', async () => {
    const { turn, messages } = open()
    expect(await turn.message(text(), async message => message.append('well').then(() => 'result'))).toBe('result')
    await expect(turn.message(text('so'), () => Promise.reject(new Error('oh')))).rejects.toThrow('oh')
    await turn.message(text(), async message => message.finish({ stopReason: 'length' }))
    expect(messages()).toMatchObject([
      { status: 'complete', content: text('well') },
      { status: 'failed', content: text('so'), error: { message: 'The agent failed' } },
      { status: 'complete', stopReason: 'length' },
    ])
  })
})

describe('misuse', () => {
  test('autoSend of what is no iterable says what it was', async () => {
    const { turn, messages } = open()
    const given = [
      [Promise.resolve([]), 'a promise: await it first'],
      [async function* () {}, 'function'],
      ['text', 'string'],
      [null, 'null'],
      [{ events: [] }, 'object'],
    ] as const
    for (const [updates, hint] of given)
      await expect(turn.autoSend(updates as never)).rejects.toMatchObject({ code: 'bad_call', message: expect.stringContaining(hint) })
    expect(messages()).toEqual([])
  })

  test('what is no update, content or delta is refused, and the message is as it was', async () => {
    const { turn, messages } = open()
    for (const garbage of [
      null,
      'text',
      7,
      {},
      { type: 'delta', index: -1, delta: { type: 'text', text: '' } },
      { type: 'delta', index: 0 },
    ])
      await expect(turn.autoSend([garbage as never])).rejects.toMatchObject({ code: 'bad_event' })
    const message = turn.message(text('a'))
    await expect(message.append({ type: 'text' } as never)).rejects.toMatchObject({ code: 'bad_event' })
    await expect(message.append({ type: 'media', bytes: 'AA==' })).rejects.toMatchObject({ code: 'delta_type_mismatch' })
    await expect(message.setData(1)).rejects.toMatchObject({ code: 'delta_type_mismatch' })
    expect(() => turn.message({ type: 'poem' } as never)).toThrow(expect.objectContaining({ code: 'bad_event' }))
    expect(messages()).toMatchObject([{ status: 'streaming', content: text('a') }])
  })

  test('what is kept beyond the turn can say nothing more', async () => {
    const { turn, writer } = open()
    const message = turn.message(text('a'))
    writer.end('complete')
    const late = [
      () => message.append('b'),
      () => message.finish(),
      () => turn.send('b'),
      () => turn.custom('note', 1),
      () => turn.autoSend([delta(0, 'b')]),
      async () => turn.message(),
    ]
    for (const say of late) await expect(say()).rejects.toMatchObject({ code: 'turn_over' })
    expect(message.current()).toMatchObject({ status: 'complete', content: text('a') })
  })

  test('is a type error where it can be', () => {
    const { turn } = open()
    const calls = () => [
      // @ts-expect-error: a promise of updates is not updates
      turn.autoSend(Promise.resolve([delta(0, 'a')])),
      // @ts-expect-error: text is not an update
      turn.autoSend(['a']),
      // @ts-expect-error: a message holds a content
      turn.message('a'),
      // @ts-expect-error: what is written in a scope is awaited
      turn.message(text(), message => message.index),
      // @ts-expect-error: a message holds JSON
      turn.message().setData(new Date()),
      // @ts-expect-error: a status is one of those that end a message
      turn.message().finish({ status: 'streaming' }),
    ]
    expect(calls).toBeTypeOf('function')
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

  test('usage adds up to what JSON can say, whatever it counts', () => {
    const messages = [1, 2].map((_, index) => message(index, { usage: { constructor: 2, toString: 1, inputTokens: 1e308 } as never }))
    expect(endOf(messages).usage).toEqual({ constructor: 4, toString: 2, inputTokens: 1e308 })
  })

  test('else in a tool that was asked for and not answered, or simply', () => {
    const asked = message(0, { content: toolRequest('c', 'add') })
    const response = message(1, { content: { type: 'tool_response', callId: 'c', name: 'add', content: 3, isError: false } })
    expect(endOf([])).toEqual({ stopReason: 'stop' })
    expect(endOf([asked])).toEqual({ stopReason: 'tool_use' })
    expect(endOf([asked, response])).toEqual({ stopReason: 'stop' })
  })
})

function open(past: Message[] = []): { turn: Turn; writer: TurnWriter; messages: TurnWriter['messages'] } {
  const writer = createTurnWriter({
    turn: { task, turn: 1, attempt: 1, firstIndex: 0 },
    epoch: 2,
    appender: { append: async () => 'ok' },
    askReopen: async () => null,
    onFenced: () => {},
    onLost: () => {},
  })
  const claim = { task: { id: task, params: null }, turn: { number: 1 }, attempt: 1 } as Claim
  const step = () => Promise.reject(new Error('not here'))
  const { turn } = createTurn({
    claim,
    writer,
    step,
    nameFor: kind => kind,
    addUsage: () => {},
    changeState: writer.changeState,
    noteUsage: () => {},
    checkBudget: () => {},
    ask: createAsk(noWaits, () => undefined),
    spawn: noChildren,
    signal: new AbortController().signal,
    log: silent,
    span: plainSpan(newTraceparent()),
    takeInputs: async () => [],
    loadHistory: async () => past,
    useStore: async () => ({ stored: null }),
    files: { read: () => Promise.reject(new Error('not here')), store: () => Promise.reject(new Error('not here')) },
  })
  return { turn, writer, messages: writer.messages }
}

function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  return { promise: new Promise<void>(open => (resolve = open)), resolve: () => resolve() }
}

function message(index: number, fields: Partial<Message>): Message {
  const common = { task, index, turn: 1, attempt: 1, author: 'agent', content: text(), metadata: {}, status: 'complete' } as const
  return { ...common, createdAt: '2026-01-01T00:00:00.000Z', ...fields }
}

const silent: Turn['log'] = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
