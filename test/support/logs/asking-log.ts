/** Random logs of a turn that asks its caller for something, and goes on when it is answered. */
import { type Event, nextIndexOf, type Wait } from '@rivulet/protocol'
import fc from 'fast-check'
import { type Entry, logOf, stateOf, task } from './log-entries.ts'
import { randomLog } from './random-log.ts'

/** At which event of the last attempt something is asked, by how many questions at once, and how many events later it is answered. */
const asking = fc.array(fc.record({ place: fc.nat(14), together: fc.integer({ min: 1, max: 2 }), later: fc.nat(3) }), {
  minLength: 1,
  maxLength: 2,
})

export const askingLog: fc.Arbitrary<Entry[]> = fc.tuple(randomLog, asking).map(([log, asked]) => withQuestions(log, asked))

function withQuestions(log: Entry[], asked: { place: number; together: number; later: number }[]): Entry[] {
  const start = log.findLastIndex(({ event }) => event.type === 'turn.started') + 1
  const events = log.map(({ event }) => event)
  const end = events.length - 1
  const attempt = events[end]?.attempt ?? 1
  const places = [...new Set(asked.map(({ place }) => Math.min(start + place, end)))].sort((a, b) => a - b)
  const inserted = new Map<number, Event[]>()
  const add = (place: number, event: Event) => inserted.set(place, [...(inserted.get(place) ?? []), event])
  for (const [nth, place] of places.entries()) {
    const { together, later } = asked[nth] ?? { together: 1, later: 0 }
    const state = stateOf(log.slice(0, place))
    const common = { task, turn: 1, attempt, at: 1 }
    const waits = Array.from({ length: together }, (_, i) => waitOf(nth, i, nextIndexOf(state)))
    for (const wait of waits) add(place, { type: 'turn.waiting', ...common, wait, ...(wait !== waits.at(-1) && { more: true }) })
    const back = Math.min(place + later, places[nth + 1] ?? end, end)
    for (const { id } of waits) add(back, { type: 'turn.resumed', ...common, wait: id, status: 'answered' })
  }
  return logOf(events.flatMap((event, place) => [...(inserted.get(place) ?? []), event]))
}

function waitOf(nth: number, place: number, index: number): Wait {
  const at = new Date(1_000 + nth).toISOString()
  return {
    id: `0198c0de-0000-7000-8000-0000000001${nth}${place}`,
    ...{ task, turn: 1, agent: 'a', name: `${nth}-${place}`, kind: 'approval', index, title: 'May I?' },
    ...{ actions: ['accept', 'decline'], metadata: {}, status: 'open', createdAt: at, expiresAt: at },
  }
}
