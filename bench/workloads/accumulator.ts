/**
 * The cost of folding, as ratios: a text delta compared with pushing the same string to an array and joining it at the end, and short messages
 * compared with long ones. Times depend on the machine, ratios hardly do. Every result is checked.
 */
import { strict as assert } from 'node:assert'
import {
  applyEvent,
  type Content,
  type Cursor,
  createTurnComposer,
  type Delta,
  data,
  delta,
  emptyState,
  formatCursor,
  media,
  messagesOf,
  seqOf,
  type TaskState,
  text,
} from '@rivulet/protocol'
import { type Bench, type Results, scaled, type Workload } from '../bench.ts'

type Row = { what: string; deltas: number; nsPerDelta: number }

const shortMessage = 'text, one message of 1,000'
const longMessage = 'text, one message of 1,000,000'

export const accumulator: Workload = {
  name: 'accumulator',
  title: 'Folding: one delta, beside pushing the same string to an array and joining it at the end',
  columns: [
    { key: 'deltas', title: 'deltas' },
    { key: 'nsPerDelta', title: 'ns per delta' },
    { key: 'ofPush', title: 'of push and join', digits: 1 },
  ],
  goals: [
    {
      text: 'a delta to a message of 1,000,000, of one to a message of 1,000',
      atMost: 2,
      value(results) {
        const [long, short] = [longMessage, shortMessage].map(row => results.get(row)?.nsPerDelta)
        return long === undefined || short === undefined ? null : long / short
      },
    },
  ],
  run,
}

const stamp = { task: '0198c0de-0000-7000-8000-000000000001', turn: 1, attempt: 1, at: 0 }
const words = Array.from({ length: 1000 }, (_, i) => `word${i} `)
const expectedText = (deltas: number) => Array.from({ length: deltas }, (_, i) => words[i % words.length]).join('')

async function run(bench: Bench): Promise<Results> {
  const many = scaled(bench, 1_000_000)
  const expected = expectedText(many)
  const bare = measure('array push and join', many, 1, () => {
    const pieces: string[] = []
    for (let i = 0; i < many; i += 1) pieces.push(words[i % words.length] ?? '')
    assert.equal(pieces.join(''), expected)
  })
  const texts = [1_000, 10_000, 100_000, 1_000_000].map(size => {
    const deltas = scaled(bench, size)
    const text = expectedText(deltas)
    const times = Math.ceil(scaled(bench, 300_000) / deltas)
    return measure(`text, one message of ${size.toLocaleString('en-US')}`, deltas, times, () => {
      assert.equal(textOf(foldText(deltas)), text)
    })
  })
  const others = [
    manyMessages(scaled(bench, 10_000), 20),
    bytes(scaled(bench, 100_000)),
    json(scaled(bench, 150_000) * 2),
    composing(scaled(bench, 200_000)),
  ]
  return new Map(
    [bare, ...texts, ...others].map(({ what, deltas, nsPerDelta }) => [what, { deltas, nsPerDelta, ofPush: nsPerDelta / bare.nsPerDelta }]),
  )
}

/** Folds text deltas into one message. */
function foldText(deltas: number): TaskState {
  let state = open(emptyState, 0, text())
  let offset = 0
  for (let i = 0; i < deltas; i += 1) {
    const piece = words[i % words.length] ?? ''
    state = append(state, 0, { type: 'text', text: piece }, offset)
    offset += piece.length
  }
  return state
}

/** All messages are open, and each delta goes to the next one. */
function manyMessages(messages: number, each: number): Row {
  return measure('text, 10,000 messages in turns', messages * each, 1, () => {
    let state = emptyState
    for (let index = 0; index < messages; index += 1) state = open(state, index, text())
    for (let round = 0; round < each; round += 1) {
      for (let index = 0; index < messages; index += 1) state = append(state, index, { type: 'text', text: 'word ' }, round * 5)
    }
    assert.equal(state.discarded, 0)
    assert.deepEqual(
      new Set(messagesOf(state).map(({ content }) => content.type === 'text' && content.text)),
      new Set(['word '.repeat(each)]),
    )
  })
}

/** Deltas of 100 bytes, so that they do not end at a base64 group. */
function bytes(deltas: number): Row {
  const piece = Buffer.alloc(100, 'abcdefg')
  const expected = Buffer.concat(Array.from({ length: deltas }, () => piece)).toString('base64')
  return measure('media, 100 bytes each', deltas, 1, () => {
    let state = open(emptyState, 0, media('audio/wav'))
    for (let i = 0; i < deltas; i += 1) state = append(state, 0, { type: 'media', bytes: piece.toString('base64') }, i * 100)
    const content = messagesOf(state)[0]?.content
    assert.equal(content?.type === 'media' && content.data, expected)
  })
}

function json(deltas: number): Row {
  const value = Array.from({ length: deltas / 2 }, (_, i) => i % 10)
  const raw = JSON.stringify(value)
  return measure('JSON, one character each', raw.length, 1, () => {
    let state = open(emptyState, 0, data())
    for (let i = 0; i < raw.length; i += 1) state = append(state, 0, { type: 'data_json', text: raw.charAt(i) }, i)
    state = applyEvent(state, { type: 'message.finished', ...stamp, index: 0, status: 'complete' }, '2-1')
    assert.deepEqual(messagesOf(state)[0]?.content, data(value))
  })
}

/** The writer's side: checking, holding back, splitting, counting and its own fold. */
function composing(deltas: number): Row {
  const expected = expectedText(deltas)
  return measure('text, composed by the writer', deltas, 1, () => {
    const composer = createTurnComposer({ ...stamp, firstIndex: 0 })
    for (let i = 0; i < deltas; i += 1) composer.compose(delta(0, words[i % words.length] ?? ''))
    const content = composer.messageAt(0)?.content
    assert.equal(content?.type === 'text' && content.text, expected)
  })
}

function open(state: TaskState, index: number, content: Content): TaskState {
  return applyEvent(state, { type: 'message.started', ...stamp, index, author: 'agent', content }, next(state))
}

function append(state: TaskState, index: number, each: Delta, offset: number): TaskState {
  return applyEvent(state, { type: 'message.delta', ...stamp, index, delta: each, offset }, next(state))
}

function next({ cursor }: TaskState): Cursor {
  return formatCursor(1, seqOf(cursor) + 1)
}

function textOf(state: TaskState): string {
  const content = messagesOf(state)[0]?.content
  return content?.type === 'text' ? content.text : ''
}

/** The faster of two rounds, after a warm-up round. */
function measure(what: string, deltas: number, times: number, act: () => void): Row {
  const rounds = [0, 1, 2].map(() => {
    const start = performance.now()
    for (let i = 0; i < times; i += 1) act()
    return performance.now() - start
  })
  return { what, deltas, nsPerDelta: (Math.min(...rounds.slice(1)) * 1e6) / (deltas * times) }
}
