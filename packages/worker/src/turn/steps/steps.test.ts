/** Steps over one writer and a server that stores them: what runs once, what is returned, and what is not allowed in a step. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AgentTurn, call, defineTool, runAgent, say, scriptedModel, user } from '@rivulet/agent'
import type { Claim } from '@rivulet/contract/internal'
import { defaultLimits, delta, done, type Message, RivuletError, start, text, toolRequest, type UsageRecord } from '@rivulet/protocol'
import { newTraceparent, plainSpan } from '@rivulet/runtime/trace'
import { describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { noChildren, noWaits } from '../../../test/no-waits.ts'
import { createTurnWriter } from '../../writer/turn-writer.ts'
import { createTurn, type Turn } from '../turn.ts'
import { createAsk } from '../waits/ask.ts'
import { createSteps } from './steps.ts'

const task = '01890000-0000-7000-8000-000000000000'

describe('the next attempt', () => {
  test('skips the work, gets its result and says its messages again, whole', async () => {
    const first = open()
    await first.turn.send('before')
    const result = await first.turn.step('draft', async () => {
      await first.turn.send({ type: 'data', data: { a: 1 } }, { source: 'x' })
      const { text: said } = await first.turn.autoSend([
        delta(0, 'one '),
        delta(0, 'two'),
        done(0, { stopReason: 'length', usage: { out: 2 } }),
      ])
      await first.turn.message(text('# '), message => message.append('three'))
      return { said, list: [1, null] }
    })
    expect(result).toEqual({ said: 'one two', list: [1, null] })

    const second = open(first.memory)
    await second.turn.send('before')
    expect(await second.turn.step('draft', () => unexpected())).toEqual(result)
    expect(second.messages().map(comparable)).toEqual(first.messages().map(comparable))
    expect(second.messages()[2]).toMatchObject({ stopReason: 'length', usage: { out: 2 } })
    expect(second.memory).toEqual(first.memory)
  })

  test('has what did not complete as it was', async () => {
    const first = open()
    await first.turn.step('tries', async () => {
      await first.turn.message(text('half'), () => Promise.reject(new Error('no'))).catch(() => {})
      await first.turn.autoSend([start(0, toolRequest('c', 'add')), delta(0, { type: 'tool_request', text: '{"a":' })])
    })
    const second = open(first.memory)
    await second.turn.step('tries', () => unexpected())
    expect(second.messages().map(comparable)).toEqual(first.messages().map(comparable))
    expect(second.messages()).toMatchObject([
      { status: 'failed', error: { message: 'The agent failed' } },
      { status: 'failed', error: { code: 'invalid_json' }, content: { raw: '{"a":' } },
    ])
  })

  test('tells nothing from null, and gets what JSON makes of the rest, as the first one did', async () => {
    const { turn, memory } = open()
    const at = new Date(0)
    const taken = async ({ step }: Turn) => [
      await step('nothing', () => {}),
      await step('null', () => null),
      await step('date', async () => ({ at, dropped: undefined, odd: Number.NaN, nul: 'a\0' })),
    ]
    const expected = [undefined, null, { at: '1970-01-01T00:00:00.000Z', odd: null, nul: 'a\uFFFD' }]
    expect(await taken(turn)).toEqual(expected)
    expect(await taken(open(memory).turn)).toEqual(expected)
  })

  test('gets names of the language’s own as the first one did, in results and in messages', async () => {
    const given = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":1},"toString":null}')
    const first = open()
    const result = await first.turn.step('a', async () => {
      await first.turn.send({ type: 'data', data: given })
      return given
    })
    const second = open(first.memory)
    const again = await second.turn.step('a', () => unexpected())
    expect([JSON.stringify(result), JSON.stringify(again)]).toEqual([JSON.stringify(given), JSON.stringify(given)])
    expect(JSON.stringify(second.messages().map(comparable))).toBe(JSON.stringify(first.messages().map(comparable)))
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  test('takes again the step that threw: its messages are failed, and it is not remembered', async () => {
    const { turn, memory, messages } = open()
    const broken = turn.step('a', async () => {
      turn.message(text('half'))
      throw new Error('broken')
    })
    await expect(broken).rejects.toThrow('broken')
    expect(messages()).toMatchObject([{ status: 'failed', error: { code: 'agent_error', message: 'The agent failed' } }])
    expect(memory).toEqual([])
    expect(await turn.step('a', async () => 'at last')).toBe('at last')
    expect(memory).toHaveLength(1)
  })

  test('is not reached by a step whose turn is over: its work is not begun, or not remembered', async () => {
    const { turn, writer, memory, messages } = open()
    const interrupted = turn.step('a', async () => {
      turn.message(text('half'))
      writer.end('aborted')
    })
    await expect(interrupted).rejects.toMatchObject({ code: 'turn_over' })
    await expect(turn.step('b', () => unexpected())).rejects.toMatchObject({ code: 'turn_over' })
    expect(memory).toEqual([])
    expect(messages()).toMatchObject([{ status: 'aborted', content: text('half') }])
  })
})

describe('a step', () => {
  test('goes on only when it is remembered, with its messages closed', async () => {
    const { turn, messages, memory } = open([], async () => {
      expect(messages()).toMatchObject([{ status: 'complete' }])
    })
    await turn.step('a', async () => {
      turn.message(text('open'))
    })
    expect(memory).toHaveLength(1)
    const refused = open([], () => Promise.reject(new Error('the server said no')))
    await expect(refused.turn.step('a', () => 1)).rejects.toThrow('the server said no')
  })

  test.each([
    ['a function', () => () => 1],
    ['a bigint', () => 1n],
    ['a value that holds itself', () => Object.assign([] as unknown[], { 0: null }).map((_, i, list) => (list[i] = list))],
  ])('refuses %s as its result', async (_, work) => {
    await expect(open().turn.step('a', work as () => unknown)).rejects.toMatchObject({
      code: 'result_rejected',
      message: expect.stringContaining('step "a"'),
    })
  })

  test('refuses what is too much to remember', async () => {
    const { turn, memory } = open()
    await expect(turn.step('a', () => 'x'.repeat(17 * 1024 * 1024))).rejects.toMatchObject({ code: 'step_too_large' })
    expect(memory).toEqual([])
  })

  test('costs the process the same, however many turns have taken one before', async () => {
    const storages = new Set<unknown>()
    const run = AsyncLocalStorage.prototype.run
    const watched = vi.spyOn(AsyncLocalStorage.prototype, 'run').mockImplementation(function (this: AsyncLocalStorage<unknown>, ...args) {
      storages.add(this)
      return run.apply(this, args)
    })
    onTestFinished(() => watched.mockRestore())
    for (let i = 0; i < 3; i += 1) await open().turn.step('a', () => 1)
    expect(storages.size).toBe(1)
  })

  test('of one turn does not affect the messages of another', async () => {
    const [one, other] = [open(), open()]
    const before = other.turn.message(text('b'))
    await one.turn.step('s', async () => {
      await before.append('efore')
      await other.turn.step('t', async () => void (await other.turn.send('inside')))
      await one.turn.send('own')
    })
    expect(other.messages().map(({ content }) => content)).toEqual([text('before'), text('inside')])
    expect(one.messages().map(({ content }) => content)).toEqual([text('own')])
  })

  test('has a result of the type that JSON makes of it', () => {
    const { turn } = open()
    expectTypeOf(() => turn.step('a', async () => {})).returns.resolves.toEqualTypeOf<void>()
    expectTypeOf(() => turn.step('a', () => ({ n: 1, s: ['x'] }))).returns.resolves.toEqualTypeOf<{ n: number; s: string[] }>()
    expectTypeOf(() => turn.step('a', () => turn.autoSend([]))).returns.resolves.toExtend<Awaited<ReturnType<Turn['autoSend']>>>()
    expectTypeOf(() => turn.step('a', () => ({ at: new Date() }))).returns.resolves.toEqualTypeOf<{ at: string }>()
    // @ts-expect-error: a date comes back as a string
    void (async () => (await turn.step('a', () => new Date())).getTime())
    // @ts-expect-error: a step has a name
    void (() => turn.step(async () => 1))
  })
})

describe('steps side by side', () => {
  const halves = async (
    { turn }: Pick<ReturnType<typeof open>, 'turn'>,
    work: (name: string, half: () => Promise<void>) => Promise<string>,
  ) => {
    const both = [gate(), gate()]
    return Promise.all(
      ['a', 'b'].map((name, i) =>
        turn.step(name, () =>
          work(name, async () => {
            both[i]?.resolve()
            await Promise.all(both.map(({ promise }) => promise))
          }),
        ),
      ),
    )
  }

  test('each has its own messages, whatever order they were opened in', async () => {
    const first = open()
    const results = await halves(first, async (name, half) => {
      await first.turn.send(`${name}1`)
      await half()
      await first.turn.send(`${name}2`)
      return name
    })
    await first.turn.send('after')
    expect(results).toEqual(['a', 'b'])
    expect(first.messages().map(textOf)).toEqual(['a1', 'b1', 'a2', 'b2', 'after'])
    const second = open(first.memory.filter(({ name }) => name === 'b'))
    expect(await second.turn.step('b', () => unexpected())).toBe('b')
    expect(second.messages().map(textOf)).toEqual(['b1', 'b2'])
  })

  test('a message that is opened outside them belongs to none', async () => {
    const first = open()
    const taken = halves(first, async (name, half) => {
      await half()
      await first.turn.send(name)
      return name
    })
    await first.turn.send('outside')
    await taken
    const second = open(first.memory)
    for (const name of ['a', 'b']) await second.turn.step(name, () => unexpected())
    expect(second.messages().map(textOf)).toEqual(['a', 'b'])
  })

  test('one that fails leaves the other as it is', async () => {
    const { turn, memory, messages } = open()
    const taken = await Promise.allSettled(
      ['bad', 'good'].map(name =>
        turn.step(name, async () => {
          const message = turn.message(text(name))
          if (name === 'bad') throw new Error('bad')
          await message.append('!')
        }),
      ),
    )
    expect(taken.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(memory.map(({ name }) => name)).toEqual(['good'])
    expect(messages()).toMatchObject([{ status: 'failed' }, { status: 'complete', content: text('good!') }])
  })

  test('two of one name are refused while the first runs', async () => {
    const { turn } = open()
    const taken = await Promise.allSettled([turn.step('a', async () => 1), turn.step('a', async () => 2)])
    expect(taken).toMatchObject([{ value: 1 }, { reason: { code: 'bad_call' } }])
  })
})

describe('a step inside a step', () => {
  test('is skipped when the outer one is not, and its messages come again with either', async () => {
    const first = open()
    const outer = async ({ turn }: { turn: Turn }, inner: () => Promise<number>, isBroken: boolean) => {
      await turn.send('one')
      const result = await turn.step('inner', inner)
      await turn.send('three')
      if (isBroken) throw new Error('broken')
      return result
    }
    const speak = (to: Turn) => async () => {
      await to.send('two')
      return 2
    }
    await expect(first.turn.step('outer', () => outer(first, speak(first.turn), true))).rejects.toThrow('broken')
    const second = open(first.memory)
    expect(await second.turn.step('outer', () => outer(second, () => unexpected(), false))).toBe(2)
    const third = open(second.memory)
    expect(await third.turn.step('outer', () => unexpected())).toBe(2)
    for (const { messages } of [second, third]) expect(messages().map(textOf)).toEqual(['one', 'two', 'three'])
  })

  test('names what it numbers below itself, so that a skipped step changes no name behind it', async () => {
    const first = open()
    const names = async (turn: Turn) => {
      const before = turn.nameFor('run')
      await turn.step('s', () => [turn.nameFor('run'), turn.nameFor('run')]).then(inside => expect(inside).toEqual(['s/run 1', 's/run 2']))
      return [before, turn.nameFor('run'), turn.nameFor('other')]
    }
    expect(await names(first.turn)).toEqual(['run 1', 'run 2', 'other 1'])
    expect(await names(open(first.memory).turn)).toEqual(['run 1', 'run 2', 'other 1'])
  })
})

describe('turn.run', () => {
  const look = defineTool({ name: 'look', description: 'Looks', input: z.object({}), run: () => 'a cat' })

  test('runs the loop on the history, sends its output, and returns the text of the last response', async () => {
    const asked: unknown[] = []
    const model = scriptedModel(({ system, messages }) => {
      asked.push([system, messages.map(({ content }) => content.type)])
      return asked.length === 1 ? [say('Let me see. '), call('look', {})] : 'A cat.'
    })
    const first = open([], undefined, [message('What is it?')])
    expect(await first.turn.run({ model, tools: [look], system: 'Be brief.' })).toMatchObject({
      text: 'A cat.',
      steps: 2,
      stopReason: 'stop',
    })
    expect(asked).toEqual([
      ['Be brief.', ['text']],
      ['Be brief.', ['text', 'text', 'tool_request', 'tool_response']],
    ])
    expect(first.memory.map(({ name }) => name)).toEqual(['run 1/model 1', 'run 1/tool 1.1', 'run 1/model 2'])
    const second = open(first.memory)
    expect(await second.turn.run({ model, tools: [look] })).toMatchObject({ text: 'A cat.', steps: 2 })
    expect(asked).toHaveLength(2)
    expect(second.messages().map(comparable)).toEqual(first.messages().map(comparable))
  })

  test('twice in a turn, and in a tool of a run, is stored under names of its own', async () => {
    const model = scriptedModel(({ messages }) => {
      const { content } = messages.at(-1) ?? {}
      return content?.type === 'text' && content.text === 'delegate' ? [call('ask', {}), call('ask', {})] : 'Fine.'
    })
    const ask = defineTool({
      name: 'ask',
      description: 'Asks another model',
      input: z.object({}),
      run: async (_, { turn }) => (await runAgent({ turn: turn as AgentTurn, model, messages: [user('inner')] }).result).text,
    })
    const first = open([], undefined, [message('delegate')])
    const handle = async ({ turn }: { turn: Turn }) => {
      await turn.run({ model, tools: [ask] })
      await turn.run({ model, messages: [user('again')] })
    }
    await handle(first)
    expect(first.memory.map(({ name }) => name).sort()).toEqual([
      'run 1/model 1',
      'run 1/model 2',
      'run 1/tool 1.1',
      'run 1/tool 1.1/run 1/model 1',
      'run 1/tool 1.2',
      'run 1/tool 1.2/run 1/model 1',
      'run 2/model 1',
    ])
    const calls = model.calls
    await handle(open(first.memory, undefined, [message('delegate')]))
    expect(model.calls).toBe(calls)
  })

  test('fails with the code of its cause when a step cannot be stored', async () => {
    const refused = open([], () => Promise.reject(new RivuletError('step_too_large', 'Too large')))
    await expect(refused.turn.run({ model: scriptedModel(['Hello.']) })).rejects.toMatchObject({ code: 'step_too_large' })
  })
})

test('what a step used is stored with it; usage outside steps, or of a step that throws, is sent at once', async () => {
  const { turn, stored, sent } = open()
  turn.usage.add({ inputTokens: 1 }, { model: 'm' })
  await turn.step('one', () => turn.usage.add({ inputTokens: 2, odd: Number.NaN }))
  await turn.step('two', async () => {
    const message = turn.message()
    await message.finish({ usage: { outputTokens: 3 }, response: { model: 'm' } })
  })
  const failing = turn.step('three', () => {
    turn.usage.add({ inputTokens: 4 })
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  const id = expect.any(String)
  expect(sent).toEqual([
    { id, model: 'm', usage: { inputTokens: 1 } },
    { id, usage: { inputTokens: 4 } },
  ])
  expect(stored).toEqual([
    { id, usage: { inputTokens: 2 } },
    { id, model: 'm', usage: { outputTokens: 3 } },
  ])
})

test('a message keeps the id of its usage when its step is skipped', async () => {
  const first = open()
  const say = async ({ turn }: typeof first) => {
    await turn.step('one', () => turn.message().finish({ usage: { outputTokens: 3 } }))
    return turn
  }
  await say(first)
  const second = open(first.memory)
  await say(second)
  expect(second.messages()[0]?.response?.id).toBe(first.messages()[0]?.response?.id)
  expect(second.stored).toEqual([])
})

test('usage that is counted in a step is counted again when the step is skipped', async () => {
  const first = open()
  first.turn.usage.add({ inputTokens: 1 })
  await first.turn.step('outer', () => first.turn.step('inner', () => first.turn.usage.add({ inputTokens: 2, outputTokens: 3 })))
  expect(first.usage()).toEqual({ inputTokens: 3, outputTokens: 3 })
  const second = open(first.memory)
  await second.turn.step('outer', () => unexpected())
  expect(second.usage()).toEqual({ inputTokens: 2, outputTokens: 3 })
})

describe('misuse', () => {
  test('an invalid name, or one that was used', async () => {
    const { turn } = open([{ name: 'known', memory: '{"result":1,"messages":[]}' }])
    for (const name of ['', 'x'.repeat(201), '\0', '\ud800', 7 as never]) {
      await expect(turn.step(name, () => 1)).rejects.toMatchObject({ code: 'bad_call' })
    }
    await turn.step('known', () => unexpected())
    await expect(turn.step('known', () => 1)).rejects.toMatchObject({
      code: 'bad_call',
      message: expect.stringContaining('Two steps are named "known"'),
    })
    await expect(turn.step('a', 'no function' as never)).rejects.toMatchObject({ code: 'bad_call' })
  })

  test('a message of before the step, written in it', async () => {
    const { turn, messages } = open()
    const message = turn.message(text('a'))
    await expect(turn.step('s', () => message.append('b'))).rejects.toMatchObject({
      code: 'bad_call',
      message: expect.stringContaining('which it did not open'),
    })
    await message.append('c')
    expect(messages()).toMatchObject([{ content: text('ac') }])
  })

  test('a message of a step, written outside it or in another', async () => {
    const { turn, writer, messages } = open()
    const [opened, refused] = [gate(), gate()]
    const taken = turn.step('s', async () => {
      turn.message(text('a'))
      opened.resolve()
      await refused.promise
    })
    await opened.promise
    await expect(writer.write(delta(0, 'b'))).rejects.toMatchObject({ message: expect.stringContaining('outside step "s"') })
    await expect(turn.step('t', () => writer.write(delta(0, 'b')))).rejects.toMatchObject({ code: 'bad_call' })
    refused.resolve()
    await taken
    expect(messages()).toMatchObject([{ content: text('a'), status: 'complete' }])
  })

  test('a step that ends before a step inside it', async () => {
    const { turn } = open()
    const ended = gate()
    let late: Promise<unknown> = Promise.resolve()
    await turn.step('outer', () => {
      late = turn.step('inner', () => ended.promise.then(() => turn.send('late')))
    })
    ended.resolve()
    await expect(late).rejects.toMatchObject({ message: expect.stringContaining('Step "outer" has ended') })
  })

  test('what a step has begun and not awaited', async () => {
    const { turn } = open()
    const ended = gate()
    let late: Promise<unknown> = Promise.resolve()
    await turn.step('s', () => {
      late = ended.promise.then(() => turn.send('late'))
    })
    ended.resolve()
    await expect(late).rejects.toMatchObject({ code: 'bad_call', message: expect.stringContaining('Step "s" has ended') })
  })
})

function open(remembered: Claim['steps'] = [], onRemember: () => Promise<void> = async () => {}, past: Message[] = []) {
  const writing = createTurnWriter({
    turn: { task, turn: 1, attempt: 1, firstIndex: 0 },
    epoch: 2,
    appender: { append: async () => 'ok' },
    askReopen: async () => null,
    onFenced: () => {},
    onLost: () => {},
  })
  const memory = [...remembered]
  const stored: UsageRecord[] = []
  const sent: UsageRecord[] = []
  const remember = async (name: string, text: string, used: UsageRecord[]) => {
    await onRemember()
    memory.push({ name, memory: text })
    stored.push(...used)
  }
  const sendUsage = (records: readonly UsageRecord[]) => void sent.push(...records)
  const steps = createSteps({ writer: writing, remembered, remember, sendUsage, maxBytes: defaultLimits.stepsBytes })
  const claim = { task: { id: task, params: null }, turn: { number: 1 }, attempt: 1 } as Claim
  const { turn } = createTurn({
    claim,
    ...steps,
    checkBudget: () => {},
    ask: createAsk(noWaits, steps.within),
    spawn: noChildren,
    signal: new AbortController().signal,
    log: silent,
    span: plainSpan(newTraceparent()),
    takeInputs: async () => [],
    loadHistory: async () => past,
    useStore: async () => ({ stored: null }),
    files: { read: () => Promise.reject(new Error('not here')), store: () => Promise.reject(new Error('not here')) },
  })
  return { turn, memory, stored, sent, usage: steps.usage, writer: steps.writer, messages: writing.messages }
}

function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  return { promise: new Promise<void>(open => (resolve = open)), resolve: () => resolve() }
}

function message(words: string): Message {
  const place = { task, index: 0, turn: 1, attempt: 1, createdAt: '2026-01-01T00:00:00.000Z' }
  return { ...place, author: 'user', content: text(words), metadata: {}, status: 'complete' }
}

function textOf({ content }: Message): string | undefined {
  return content.type === 'text' ? content.text : undefined
}

/** Times are those of the saying. */
function comparable({ createdAt: _, finishedAt: __, ...message }: Message): object {
  return message
}

function unexpected(): never {
  throw new Error('This step was to be skipped')
}

const silent: Turn['log'] = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
