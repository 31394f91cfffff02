/**
 * Every row of the accumulator's table that can be driven from outside, in each way to stream. What an agent yields, has sent or writes by
 * hand comes to the same rows and the same log; only by hand is it an error to write where nothing is open.
 */
import { type Event, mergeDeltas } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { done, extend, fail, full, type Mode, modes, rest, type Step, say, scripted, start } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const text = (value: string, format = 'plain') => ({ type: 'text', text: value, format })
const toolRequest = { type: 'tool_request', callId: 'c1', name: 'add', arguments: { base: true } }
const toolResponse = (content: unknown) => ({ type: 'tool_response', callId: 'c1', name: 'add', content, isError: false })
const json = (value: string) => ({ type: 'data_json', text: value })
const tool = (value: string) => ({ type: 'tool_request', text: value })

type Outcome = { messages: object[]; error?: string }
type Case = { name: string; steps: Step[] } & Outcome & { byHand?: Outcome }

const complete = (content: object, more: object = {}) => ({ status: 'complete', content, ...more })
const failed = (content: object, code: string) => ({ status: 'failed', content, error: { code } })

/** `byHand` is what happens in manual mode, where that differs. */
const cases: Case[] = [
  {
    name: 'deltas extend the content that a message was started with; its format is kept',
    steps: [start(0, text('# a', 'markdown')), say(0, 'b'), say(0, 'c'), done(0)],
    messages: [complete(text('# abc', 'markdown'))],
  },
  {
    name: 'a delta at an unopened index opens it empty, once',
    steps: [say(0, 'a'), say(0, 'b'), say(1, 'c')],
    messages: [complete(text('ab')), complete(text('c'))],
    byHand: { messages: [], error: 'message_not_started' },
  },
  ...(
    [
      ['reasoning', { type: 'reasoning_content', index: 1, text: 'a' }, { type: 'reasoning', summary: [], content: ['', 'a'] }],
      ['a summary', { type: 'reasoning_summary', index: 0, text: 'a' }, { type: 'reasoning', summary: ['a'], content: [] }],
      ['JSON', json('[1]'), { type: 'data', data: [1] }],
      ['a value', { type: 'data', value: { a: 1 } }, { type: 'data', data: { a: 1 } }],
      ['arguments', tool('{"a":1}'), { type: 'tool_request', callId: '', name: '', arguments: { a: 1 } }],
      ['a response', { type: 'tool_response', text: 'a' }, { type: 'tool_response', callId: '', name: '', content: 'a', isError: false }],
      ['bytes', { type: 'media', bytes: 'AAEC' }, { type: 'media', mimeType: 'application/octet-stream', data: 'AAEC' }],
    ] as const
  ).map(([what, delta, content]) => ({
    name: `a delta of ${what} at an unopened index opens a message of its kind`,
    steps: [extend(0, delta)],
    messages: [complete(content)],
    byHand: { messages: [], error: 'message_not_started' },
  })),
  {
    name: 'a delta that does not fit is refused, the message is as it was, and the turn fails',
    steps: [start(0, text('kept')), extend(0, json('1')), say(0, 'never')],
    messages: [failed(text('kept'), 'delta_type_mismatch')],
    error: 'delta_type_mismatch',
  },
  {
    name: 'an empty delta says nothing',
    steps: [start(0, text('a')), say(0, ''), extend(0, { type: 'text', text: '' }), say(0, 'b')],
    messages: [complete(text('ab'))],
  },
  {
    name: 'a full message at an open index replaces all of it and closes it',
    steps: [start(0, text('draft')), say(0, ' of'), full(0, { type: 'data', data: [1] })],
    messages: [complete({ type: 'data', data: [1] })],
  },
  {
    name: 'a full message at an unopened index creates and closes it',
    steps: [full(0, text('whole')), full(1, toolResponse({ sum: 3 }))],
    messages: [complete(text('whole')), complete(toolResponse({ sum: 3 }))],
  },
  ...(
    [
      ['a start', start(0, text('new'))],
      ['a delta', say(0, 'late')],
      ['a full message', full(0, text('late'))],
      ['a close', done(0)],
    ] as const
  ).map(([what, late]) => ({
    name: `${what} at a closed index is discarded`,
    steps: [start(0, text('closed')), done(0), late, start(1, text('next'))],
    messages: [complete(text('closed')), complete(text('next'))],
    byHand: { messages: [complete(text('closed'))], error: 'message_closed' },
  })),
  {
    name: 'a close at an unopened index is discarded',
    steps: [done(0), start(0, text('a'))],
    messages: [complete(text('a'))],
    byHand: { messages: [], error: 'message_not_started' },
  },
  {
    name: 'a message that was started and closed without a delta is complete with what it began with',
    steps: [start(0, toolRequest), done(0)],
    messages: [complete(toolRequest)],
  },
  {
    name: 'what is open when the agent returns is closed as complete',
    steps: [start(0, text('a')), start(1, text('b')), say(0, '1'), say(1, '2'), start(2, text('c')), done(1)],
    messages: [complete(text('a1')), complete(text('b2')), complete(text('c'))],
  },
  {
    name: 'what is open when the agent throws is failed, with what it holds',
    steps: [start(0, text('a')), done(0), start(1, text('b')), start(2, toolRequest), extend(2, tool('{"a":')), fail('broken')],
    messages: [complete(text('a')), failed(text('b'), 'agent_error'), failed({ ...toolRequest, raw: '{"a":' }, 'agent_error')],
    error: 'agent_error',
  },
  {
    name: 'fragments of JSON supersede the base and are parsed at the close',
    steps: [start(0, toolRequest), extend(0, tool('{"a"')), extend(0, tool(':[1,2]}')), done(0)],
    messages: [complete({ ...toolRequest, arguments: { a: [1, 2] } })],
  },
  {
    name: 'blank arguments are an empty object',
    steps: [start(0, toolRequest), extend(0, tool(' ')), done(0)],
    messages: [complete({ ...toolRequest, arguments: {} })],
  },
  {
    name: 'JSON that does not parse at the close fails its message and stays there as text',
    steps: [start(0, { type: 'data', data: null }), extend(0, json('{"half":')), done(0), start(1, text('goes on'))],
    messages: [failed({ type: 'data', data: null, raw: '{"half":' }, 'invalid_json'), complete(text('goes on'))],
  },
  {
    name: 'a value replaces fragments, and progress replaces a response',
    steps: [
      start(0, { type: 'data', data: 1 }),
      extend(0, json('[2')),
      extend(0, { type: 'data', value: [3] }),
      start(1, toolResponse(null)),
      extend(1, { type: 'data', value: { percent: 50 } }),
      extend(1, { type: 'data', value: 'done' }),
      extend(1, { type: 'tool_response', text: '!' }),
    ],
    messages: [complete({ type: 'data', data: [3] }), complete(toolResponse('done!'))],
  },
  {
    name: 'bytes are appended whatever their number, and parts of reasoning where they belong',
    steps: [
      start(0, { type: 'media', mimeType: 'image/png', data: 'AA==' }),
      extend(0, { type: 'media', bytes: 'AQI=' }),
      extend(0, { type: 'media', bytes: 'Aw==' }),
      start(1, { type: 'reasoning', summary: ['so'], content: [] }),
      extend(1, { type: 'reasoning_content', index: 2, text: 'x' }),
      extend(1, { type: 'reasoning_summary', index: 0, text: '.' }),
    ],
    messages: [
      complete({ type: 'media', mimeType: 'image/png', data: 'AAECAw==' }),
      complete({ type: 'reasoning', summary: ['so.'], content: ['', '', 'x'] }),
    ],
  },
  {
    name: 'metadata is replaced as a whole and leaves the content alone',
    steps: [
      { start: { index: 0, content: text('a'), metadata: { old: 1 } } },
      extend(0, { type: 'metadata', metadata: { new: [2] } }),
      say(0, 'b'),
      done(0),
    ],
    messages: [complete(text('ab'), { metadata: { new: [2] } })],
  },
  {
    name: 'messages are in the order in which they open, whatever their indexes are',
    steps: [start(3, text('first')), start(1, text('second')), say(3, ' of all'), done(1), say(3, '!')],
    messages: [complete(text('first of all!')), complete(text('second'))],
  },
  {
    name: 'a notice changes no message',
    steps: [{ custom: { name: 'note', data: { any: 'thing' } } }, start(0, text('a')), { custom: { name: 'note', data: 2 } }],
    messages: [complete(text('a'))],
  },
]

describe.concurrent.each(modes)('%s:', mode => {
  for (const { name, steps, byHand, ...usual } of cases) {
    test(name, async ({ expect }) => {
      const expected = mode === 'manual' && byHand ? byHand : usual
      const { task, turns, messages } = await play(steps, mode)
      expect(messages).toMatchObject(expected.messages)
      expect(turns[0]).toMatchObject(expected.error ? { status: 'failed', error: { code: expected.error } } : { status: 'completed' })
      expect(await faultsOf(platform, task.id)).toEqual([])
    })
  }

  test('a turn that is canceled keeps what it said, aborted, and no error of the agent escapes', async ({ expect }) => {
    const steps = [start(0, text('a')), done(0), start(1, text('b')), say(1, 'c'), { custom: { name: 'said', data: null } }, rest(60_000)]
    const { task } = await platform.client.createTask(scripted(steps, {}, mode))
    await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.status === 'running')
    await untilLogged(task.id, 'custom')
    await platform.client.cancel(task.id)
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'canceled', stopReason: 'aborted' }])
    expect(turns[0]?.error).toBeUndefined()
    expect(await platform.client.messages(task.id)).toMatchObject([
      complete(text('a')),
      { status: 'aborted', stopReason: 'aborted', content: text('bc') },
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

test.concurrent.for(cases.filter(({ byHand }) => !byHand))('the log is the same in every mode: $name', async ({ steps }, { expect }) => {
  const [generator, autoSend, manual] = await Promise.all(
    modes.map(async mode => comparable(await platform.log((await play(steps, mode)).task.id))),
  )
  expect(autoSend).toEqual(generator)
  expect(manual).toEqual(generator)
})

async function play(steps: Step[], mode: Mode) {
  const finished = await platform.client.finishedTask(scripted(steps, { maxAttempts: 1 }, mode))
  await untilLogged(finished.task.id, 'turn.finished')
  return finished
}

async function untilLogged(task: string, type: Event['type']): Promise<void> {
  await until(`${type} stands in the log`, async () => (await platform.log(task)).some(({ event }) => event.type === type))
}

/** Without what differs between two tasks and the words for people, and with neighbouring deltas merged as they may be on the way. */
function comparable(logged: { event: Event }[]): object[] {
  const merged: Event[] = []
  for (const { event } of logged) {
    const last = merged.at(-1)
    const both = event.type === 'message.delta' && last?.type === 'message.delta' && event.index === last.index
    const delta = both && mergeDeltas(last.delta, event.delta)
    if (delta) merged[merged.length - 1] = { ...last, delta }
    else merged.push(event)
  }
  return merged.map(({ task: _, at: __, ...event }) => ({ ...event, ...('error' in event && { error: event.error?.code }) }))
}
