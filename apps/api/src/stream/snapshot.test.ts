import { decodeByteText } from '@rivulet/broker'
import {
  applyEvent,
  type Content,
  type Event,
  emptyState,
  type Message,
  messagesOf,
  restoreState,
  type TaskState,
  wireEventSchema,
} from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../test/support/agents/scripts.ts'
import { createTaskWorld } from '../../../../test/support/judge/task-world.ts'
import { newestFitting } from '../store/reads/snapshot-budget.ts'
import { covers, isTaskSettled, makeSnapshot, type SnapshotBase } from './snapshot.ts'

const MiB = 1024 * 1024

const everything = Array.from({ length: 150 }, (_, seed) => ({ seed: seed + 1, maxBytes: MiB }))
/** Too little for some messages, for most, or for any: a message has about 300 bytes. */
const tooLittle = Array.from({ length: 100 }, (_, seed) => ({ seed: seed + 1, maxBytes: [1_500, 700, 300, 1][seed % 4] ?? 1 }))

test('with the events after it, it is the whole: at any moment of any task, with rows that are as new or newer than the log', () => {
  for (const { seed, maxBytes } of [...everything, ...tooLittle]) {
    const random = seededRandom(seed)
    const log: { cursor: `${number}-${number}`; event: Event }[] = []
    const world = createTaskWorld({
      random,
      onPush: ({ entries }) =>
        log.push(...entries.map(({ cursor, json }) => ({ cursor, event: JSON.parse(decodeByteText(json)) as Event }))),
    })
    const taken: { state: TaskState; at: number }[] = []
    let state = emptyState
    let folded = 0
    while (world.step()) {
      // The feed is behind now and then, and never ahead.
      while (folded < log.length && random() < 0.8) {
        const entry = log[folded]
        if (entry) state = applyEvent(state, entry.event, entry.cursor)
        folded += 1
      }
      const base = within(baseOf(world.rows()), maxBytes)
      if (!covers(base, state)) throw new Error('A turn is committed before the log speaks of it')
      const { task, turns, messages, messagesFrom, ...rest } = makeSnapshot('join', state, base, maxBytes)
      wireEventSchema.parse({ ...rest, task, turns, messages, messagesFrom })
      for (const known of [state, emptyState]) {
        const [whole, part] = [
          makeSnapshot('join', known, baseOf(world.rows()), MiB),
          makeSnapshot('join', known, within(baseOf(world.rows()), maxBytes), maxBytes),
        ]
        expect(part.messages).toEqual(whole.messages.slice(part.messagesFrom))
        expect(part.messagesFrom + part.messages.length).toBe(whole.messages.length)
      }
      taken.push({ state: restoreState(state.cursor, { status: task.status, turns, messages, messagesFrom }), at: folded })
    }
    const stored = world.rows()
    for (const { state: restored, at } of taken) {
      const end = log.slice(at).reduce((before, { event, cursor }) => applyEvent(before, event, cursor), restored)
      expect(messagesOf(end)).toEqual(stored.messages.slice(end.messagesFrom))
      expect([end.messagesFrom + end.messages.length, end.discarded]).toEqual([stored.messages.length, 0])
      if (maxBytes === MiB) expect(end.messagesFrom).toBe(0)
      expect(end.turns.map(({ number, status }) => [number, status])).toEqual(stored.turns.map(({ number, status }) => [number, status]))
    }
  }
})

describe('what is in it', () => {
  test('of ended turns, as many of the newest messages as fit, without holes', () => {
    const base = conversation([300_000, 300_000, 300_000, 300_000, 300_000])
    const { messages, messagesFrom } = makeSnapshot('join', emptyState, base, MiB)
    expect(messages.map(({ index }) => index)).toEqual([2, 3, 4])
    expect(messagesFrom).toBe(2)
  })

  test('of a turn that has not ended, everything, however long', () => {
    const base = conversation([300_000, 10, 800_000, 900_000], 3)
    const { messages } = makeSnapshot('join', emptyState, base, MiB)
    expect(messages.map(({ index }) => index)).toEqual([0, 1, 2, 3])
    const longer = makeSnapshot('join', emptyState, conversation([900_000, 300_000, 800_000, 900_000], 3), MiB)
    expect(longer.messages.map(({ index }) => index)).toEqual([1, 2, 3])
  })

  test('nothing, if the newest message alone is too long: the rest is read elsewhere', () => {
    const { messages, messagesFrom } = makeSnapshot('join', emptyState, conversation([10, 2 * MiB]), MiB)
    expect([messages, messagesFrom]).toEqual([[], 2])
  })

  test('nothing, where Postgres has kept the newest message to itself because it is too long', () => {
    const base = within(conversation([10, 10, 2 * MiB]), MiB)
    expect(base.messages).toEqual([])
    const [joined, queued] = [emptyState, applyEvent(emptyState, { ...event(base), type: 'turn.queued', turn: 3 }, '1-1')].map(state =>
      makeSnapshot('join', state, base, MiB),
    )
    expect([joined?.messages, joined?.messagesFrom]).toEqual([[], 3])
    // The log is going to have the third turn: its rows are not counted.
    expect([queued?.messages, queued?.messagesFrom]).toEqual([[], 2])
  })

  test('of inputs and params, what fits, whether the log or Postgres has them; the others are named', () => {
    const base = conversation([10, 10, 10])
    const input = { type: 'text', text: 'x'.repeat(1_000), format: 'plain' } as const
    const turns = base.turns.map(turn => ({ ...turn, input, params: 'p' }))
    const shown = (maxBytes: number, stored: SnapshotBase, state = emptyState) =>
      makeSnapshot('join', state, stored, maxBytes).turns.map(turn => [turn.input?.type, turn.params, turn.omitted])
    const whole = ['text', 'p', undefined]
    expect(shown(MiB, { ...base, turns })).toEqual([whole, whole, whole])
    expect(shown(3_200, { ...base, turns })).toEqual([whole, whole, whole])
    const none = [undefined, undefined, ['input', 'params']]
    const bytes = Buffer.byteLength(JSON.stringify(input)) + 3
    // Metadata and params of the task: `{}` and `null`.
    expect(shown(2 * bytes + 6, { ...base, turns })).toEqual([none, whole, whole])
    expect(shown(2 * bytes + 5, { ...base, turns })).toEqual([none, ['text', undefined, ['params']], whole])
    // Postgres has left out what was too much for it: the log may have some of that again.
    const left = turns.map(({ input: _, ...turn }) => (turn.number < 3 ? { ...turn, omitted: ['input'] } : { ...turn, input }))
    const state = applyEvent(
      emptyState,
      { ...event(base), type: 'turn.queued', turn: 3, input: { ...input, text: 'y'.repeat(2_000) } },
      '1-1',
    )
    expect(shown(MiB, { ...base, turns: left })).toEqual([none, none, whole])
    expect(shown(1_500, { ...base, turns: left }, state)).toEqual([none, none, none])
  })

  test('nothing of a turn that the log does not have yet', () => {
    const base = conversation([10, 10, 10])
    const state = applyEvent(emptyState, { type: 'turn.queued', task: base.task.id, turn: 2, attempt: 0, at: 0 }, '1-1')
    const { turns, messages } = makeSnapshot('join', state, base, MiB)
    expect(turns.map(({ number }) => number)).toEqual([1, 2])
    expect(turns[1]?.status).toBe('queued')
    expect(messages.map(({ turn: turnNumber }) => turnNumber)).toEqual([1])
  })
})

describe('a large value', () => {
  const table = Array.from({ length: 100 }, (_, row) => ({ row }))
  const whole: Content = { type: 'data', data: table }
  const file: Content = { type: 'data', data: [{ row: 0 }, '…'], file: '01890000-0000-7000-8000-000000000000', size: 1_000 }
  const base = conversation([10, 10, 10])
  const stored = { ...base, messages: base.messages.map(message => ({ ...message, content: file })) }
  const about = { task: base.task.id, attempt: 1, at: 0 }
  const eventsOfTurn = (turn: number): Event[] => [
    { type: 'turn.started', ...about, turn, firstIndex: turn - 1 },
    { type: 'message.replaced', ...about, turn, index: turn - 1, content: whole },
    { type: 'turn.finished', ...about, turn, status: 'completed', stopReason: 'stop' },
  ]
  const folded = (events: Event[]) => events.reduce((state, event, i) => applyEvent(state, event, `1-${i + 1}`), emptyState)
  const shown = (events: Event[], rows: SnapshotBase) => {
    const { messages, messagesFrom } = makeSnapshot('join', folded(events), rows, MiB)
    return [messagesFrom, ...messages.map(({ content }) => content)]
  }

  test('is whole while the log has no end of its turn, and from there on the file of its row', () => {
    const events = [...eventsOfTurn(1), ...eventsOfTurn(2)]
    expect(shown(events.slice(0, 2), stored)).toEqual([0, whole])
    expect(shown(events.slice(0, 3), stored)).toEqual([0, file])
    expect(shown(events.slice(0, 5), stored)).toEqual([0, file, whole])
    expect(shown(events, stored)).toEqual([0, file, file])
  })

  test('that stayed in its row is whole', () => {
    expect(shown(eventsOfTurn(1), base)).toEqual([0, whole])
  })

  test('whose row was not read is left out, with everything before it', () => {
    const events = [...eventsOfTurn(1), ...eventsOfTurn(2), ...eventsOfTurn(3)]
    const part = (from: number) => ({ ...stored, messages: stored.messages.slice(from) })
    expect(shown(events, part(2))).toEqual([2, file])
    expect(shown(events.slice(0, 8), part(2))).toEqual([2, whole])
    expect(shown(events.slice(0, 6), part(2))).toEqual([2])
  })
})

describe('whether something is left to come', () => {
  test('is decided by the log where it knows of a turn, and else by Postgres', () => {
    const ended = conversation([10])
    const running = conversation([10], 1)
    const queued = applyEvent(emptyState, { type: 'turn.queued', task: ended.task.id, turn: 1, attempt: 0, at: 0 }, '1-1')
    expect(isTaskSettled(emptyState, ended)).toBe(true)
    expect(isTaskSettled(emptyState, running)).toBe(false)
    expect(isTaskSettled(queued, ended)).toBe(false)
  })
})

/** One turn for each message, of so many characters; those from `runningFrom` on have not ended. */
function conversation(lengths: number[], runningFrom = Number.POSITIVE_INFINITY): SnapshotBase {
  const world = createTaskWorld({ random: () => 0, onPush: () => {} })
  world.step()
  const { task, turns } = world.rows()
  const [first] = turns
  if (!first) throw new Error('A world begins with a turn')
  const messages = lengths.map(
    (length, index): Message => ({
      ...{ task: task.id, index, turn: index + 1, attempt: 1, author: 'agent', metadata: {}, status: 'complete' },
      content: { type: 'text', text: 'x'.repeat(length), format: 'plain' },
      createdAt: task.createdAt,
    }),
  )
  return baseOf({
    task,
    turns: lengths.map((_, i) => ({ ...first, number: i + 1, status: i + 1 >= runningFrom ? 'running' : 'completed' })),
    messages,
  })
}

function baseOf({ task, turns, messages }: Pick<SnapshotBase, 'task' | 'turns' | 'messages'>): SnapshotBase {
  const starts = messages
    .filter(({ turn: turnNumber }, i) => turnNumber !== messages[i - 1]?.turn)
    .map(({ turn: turnNumber, index }) => ({ turnNumber, index }))
  return { task, epoch: 2, turns, messages, nextIndex: messages.length, starts, state: null, upTo: turns.at(-1)?.number ?? 0 }
}

/** The fields that Postgres sends. */
function within(base: SnapshotBase, maxBytes: number): SnapshotBase {
  return { ...base, messages: newestFitting(base.messages, maxBytes) }
}

function event({ task }: SnapshotBase) {
  return { task: task.id, attempt: 0, at: 0 }
}
