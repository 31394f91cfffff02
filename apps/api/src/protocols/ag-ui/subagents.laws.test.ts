/** Laws of the children of a run: whatever parent and child emit, in whatever order their logs arrive, and wherever a client joins or resumes. */
import { type Cursor, messagesOf, type OutcomeStatus, type TaskId } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { child, withChild } from '../../../../../test/support/logs/child-log.ts'
import { cursorOf, type Entry, replay, snapshotOf, stateOf, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import { comparable, type ReadMessage, readRun, run, viewer } from '../../../test/ag-ui-reader.ts'
import type { DialectStream } from '../../stream/dialects/dialect.ts'
import { agUiMessages } from './ag-ui-message.ts'
import { type AgUiRun, openAgUiStream } from './ag-ui-stream.ts'
import type { AgUiChunk } from './sent-messages.ts'

type Family = { parent: Entry[]; own: Entry[]; order: boolean[]; gap: number }
type Frame = { id: Cursor | null; chunk: AgUiChunk }

/** A parent that waits for its child, or has it run beside itself; `order` says which log arrives next, and `gap` where the child's loses two entries. */
const families: fc.Arbitrary<Family> = fc
  .record({
    parent: randomLog,
    own: randomLog,
    order: fc.array(fc.boolean(), { maxLength: 60 }),
    places: fc.tuple(fc.nat(30), fc.nat(30)),
    gap: fc.nat(20),
  })
  .map(({ parent, own, order, places, gap }) => ({
    ...{ parent: withChild(parent, statusIn(own), places), order, gap },
    own: own.map(({ cursor, event }) => ({ cursor, event: { ...event, task: child } })),
  }))

test('the reader has what both have said, in whatever order their logs arrive', async () => {
  await always(async family => {
    const { chunks } = await play(family, run, 0)
    expect(comparable(readRun(chunks))).toEqual(comparable(stored(family)))
  }, 200)
})

test('so it has with a gap in the log of the child, and joined anywhere by snapshots of both', async () => {
  await always(async family => {
    const { chunks } = await play(family, run, 0, { hasGap: true })
    expect(comparable(readRun(chunks))).toEqual(comparable(stored(family)))
    for (let place = 2; place < family.parent.length; place += 3) {
      const joined = await play(family, viewer, place, { isJoined: true })
      expect(comparable(readRun(joined.chunks))).toEqual(comparable(stored(family)))
    }
  })
})

test('cut after any chunk and resumed at the cursor it has, the reader has what both have said', async () => {
  await always(async family => {
    const { frames } = await play(family, run, 0)
    for (let cut = 1; cut < frames.length; cut += 1) {
      const got = frames.slice(0, cut)
      const had = readRun(
        got.map(({ chunk }) => chunk),
        [],
        true,
      )
      const cursor = got.findLast(({ id }) => id !== null)?.id
      const place = family.parent.findIndex(entry => entry.cursor === cursor) + 1
      if (place === 0) continue
      const { chunks } = await play(family, { ...viewer, isBack: true }, place)
      expect(comparable(readRun(chunks, had))).toEqual(comparable(stored(family)))
    }
  }, 40)
})

test('what a reader has of a child stays where it is when it comes back, also while the log of the child is on its way', async () => {
  await always(async family => {
    const { frames, chunks } = await play(family, run, 0)
    const had = readRun(chunks)
    const cursor = frames.find(({ chunk }) => chunk.type === 'SUBAGENT_STARTED')?.id
    const place = family.parent.findIndex(entry => entry.cursor === cursor) + 1
    const back = await play({ ...family, gap: family.own.length - 1 }, { ...viewer, isBack: true }, place)
    for (let cut = 1; cut <= back.chunks.length; cut += 1) {
      const isCut = cut < back.chunks.length
      expect(ofChild(readRun(back.chunks.slice(0, cut), had, isCut))).toEqual(ofChild(had))
    }
  })
})

test('a child that cannot be followed ends where the log of its parent has its end, and the run does not wait for it', async () => {
  await always(async family => {
    const { chunks } = await play({ ...family, own: [] }, run, 0)
    expect(comparable(readRun(chunks))).toEqual(comparable(stored({ ...family, own: [] })))
    expect(chunks.filter(({ type }) => /^SUBAGENT_(FINISHED|ERROR)$/.test(type))).toHaveLength(1)
  })
})

async function always(law: (family: Family) => Promise<void>, numRuns = 40): Promise<void> {
  await fc.assert(fc.asyncProperty(families, law), { numRuns })
}

/** The chunks of a client that begins after this many entries of the parent's log: with a snapshot, or with those entries as what it has. */
async function play(family: Family, wanted: AgUiRun, place: number, { isJoined = false, hasGap = false } = {}) {
  const { parent, own, order, gap } = family
  let arriving: (() => Frame[])[] = []
  const follow = (_: TaskId, from: 'log' | null) => {
    if (own.length === 0) arriving = [() => taken('1-1', { type: 'deleted', task: child })]
    else if (from === 'log') arriving = own.map(entry => () => taken(entry.cursor, entry.event))
    else
      arriving = [
        snapshotAt(gap % own.length, 'join'),
        ...own.slice((gap % own.length) + 1).map(entry => () => taken(entry.cursor, entry.event)),
      ]
    if (hasGap && own.length > 2) arriving.splice(gap % (own.length - 2), 3, snapshotAt((gap % (own.length - 2)) + 2, 'gap'))
  }
  const isBack = place > 0 && !isJoined
  const stream: DialectStream<AgUiChunk> = await openAgUiStream(wanted, isBack ? replay(parent.slice(0, place)) : undefined, follow)
  const joining = isJoined ? [() => taken(cursorOf(parent, place), snapshotOf(parent.slice(0, place), 'join'))] : []
  const caughtUp = () => taken(cursorOf(parent, parent.length), { type: 'caught_up', task })
  const coming = [...joining, ...parent.slice(place).map(entry => () => taken(entry.cursor, entry.event)), caughtUp]
  const frames: Frame[] = []
  for (let step = 0; coming.length + arriving.length > 0; step += 1) {
    const next = (order[step % Math.max(order.length, 1)] ? arriving.shift() : coming.shift()) ?? coming.shift() ?? arriving.shift()
    frames.push(...(next?.() ?? []))
  }
  return { frames, chunks: frames.map(({ chunk }) => chunk) }

  function taken(cursor: Cursor, event: Parameters<DialectStream['take']>[1]): Frame[] {
    const chunks = stream.take(cursor, event)
    const last = stream.isPlace?.(event) ? chunks.length - 1 : -1
    return chunks.map((chunk, at) => ({ id: at === last ? cursor : null, chunk }))
  }

  function snapshotAt(at: number, reason: 'join' | 'gap'): () => Frame[] {
    const snapshot = snapshotOf(own.slice(0, at + 1), reason)
    const turns = snapshot.turns.map(turn => ({ ...turn, task: child }))
    return () => taken(cursorOf(own, at + 1), { ...snapshot, task: { ...snapshot.task, id: child }, turns })
  }
}

function statusIn(log: Entry[]): OutcomeStatus {
  const end = log.at(-1)?.event
  if (end?.type !== 'turn.finished') throw new Error('The child does not end')
  return end.status
}

function stored({ parent, own }: Pick<Family, 'parent' | 'own'>): ReadMessage[] {
  const said = agUiMessages(messagesOf(stateOf(own))).map(message => ({ ...message, subagentRunId: child }))
  return [...agUiMessages(messagesOf(stateOf(parent))), ...said]
}

/** In their order. Progress is not stored. */
function ofChild(messages: readonly ReadMessage[]): ReadMessage[] {
  return messages.filter(({ subagentRunId, activityType }) => subagentRunId === child && activityType !== 'tool-progress')
}
