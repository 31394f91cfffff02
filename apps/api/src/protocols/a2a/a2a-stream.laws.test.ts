/** Laws of the dialect of A2A: whatever an agent emits, and wherever a client joins, resumes or misses events, it has what is stored. */
import { type Content, data, messagesOf, text } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cursorOf, type Entry, logOf, replay, snapshotOf, stateOf, take, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import { legacyChunk } from './a2a-legacy.ts'
import { type A2aChunk, openA2aStream } from './a2a-stream.ts'
import { type Artifact, artifactOf, endsStream, type Part } from './a2a-task.ts'

const run = { task, contextId: task, turnId: 'turn', turnNumber: 1, answered: new Set<string>() }

const always = (law: (log: Entry[]) => Promise<void>, numRuns = 60) => fc.assert(fc.asyncProperty(randomLog, law), { numRuns })

test('from the start on, the reader has what is stored, and the outcome', async () => {
  await always(async log => {
    const chunks = take(await openA2aStream(run, undefined), log)
    expect(fold(chunks)).toEqual(stored(log))
    const end = log.at(-1)?.event
    const last = chunks.at(-1)
    const states = { completed: 'COMPLETED', canceled: 'CANCELED', failed: 'FAILED' }
    if (end?.type !== 'turn.finished' || !last || !('statusUpdate' in last)) throw new Error('There is no end')
    expect(last.statusUpdate.status.state).toBe(`TASK_STATE_${states[end.status]}`)
    expect(chunks.flatMap(chunk => ('statusUpdate' in chunk ? (chunk.statusUpdate.status.timestamp ?? 'none') : []))).not.toContain('none')
    expect(chunks.map(legacyChunk).filter(chunk => 'final' in chunk && chunk.final)).toHaveLength(1)
  }, 300)
})

test('joined at any event by a snapshot, and with a gap anywhere', async () => {
  await always(async log => {
    for (let place = 1; place < log.length; place += 1) {
      const stream = await openA2aStream(run, undefined)
      const first = stream.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'join'))
      expect(fold([...first, ...take(stream, log.slice(place))])).toEqual(stored(log))
    }
    for (let place = 1; place < log.length; place += 1) {
      for (const after of new Set([Math.min(place + 2, log.length), log.length])) {
        const stream = await openA2aStream(run, undefined)
        const before = take(stream, log.slice(0, place))
        const gap = stream.take(cursorOf(log, after), snapshotOf(log.slice(0, after), 'gap'))
        const chunks = [...before, ...gap, ...take(stream, log.slice(after))]
        expect(fold(chunks)).toEqual(stored(log))
        expect(chunks.findIndex(isTerminal)).toBe(chunks.length - 1)
      }
    }
  }, 40)
})

test('resumed at any event, the reader gets the task as it was there, and the rest', async () => {
  await always(async log => {
    for (let place = 1; place <= log.length; place += 1) {
      const stream = await openA2aStream(run, replay(log.slice(0, place)))
      const rest = [...take(stream, log.slice(place)), ...stream.take(cursorOf(log, log.length), { type: 'caught_up', task })]
      expect(fold(rest)).toEqual(stored(log))
      expect(stream.hasEnded()).toBe(true)
    }
  })
})

test('an artifact that is replaced in a gap by data that streams is closed only when the data is whole', async () => {
  const ids = { task, turn: 1, at: 1, attempt: 1 }
  const logWith = (content: Content): Entry[] =>
    logOf([
      { type: 'turn.started', ...ids, firstIndex: 0 },
      { type: 'message.started', ...ids, index: 0, author: 'agent', content },
    ])
  const stream = await openA2aStream(run, undefined)
  const before = take(stream, logWith(text('a')))
  const gap = stream.take('1-3', snapshotOf(logWith(data()), 'gap'))
  const rest = take(stream, [{ cursor: '1-4', event: { type: 'message.finished', ...ids, index: 0, status: 'complete' } }])
  const updates = [...before, ...gap, ...rest].flatMap(chunk => ('artifactUpdate' in chunk ? [chunk.artifactUpdate] : []))
  expect(updates.map(({ lastChunk }) => lastChunk)).toEqual([false, false, true])
})

test.each(['caught_up', 'snapshot'] as const)('a running turn that is discarded ends with its last words, also behind a %s', async type => {
  const ids = { task, turn: 1, at: 1, attempt: 1 }
  const log = logOf([
    { type: 'turn.started', ...ids, firstIndex: 0 },
    { type: 'message.started', ...ids, index: 0, author: 'agent', content: text('a') },
    { type: 'turn.discarded', ...ids, turn: 2, attempt: 0, from: 1 },
  ])
  const stream = await openA2aStream(run, type === 'caught_up' ? replay(log) : undefined)
  const first = stream.take('1-3', type === 'caught_up' ? { type, task } : snapshotOf(log, 'join'))
  const rest = logOf(
    [
      { type: 'message.delta', ...ids, index: 0, delta: { type: 'text', text: 'b' }, offset: 1 },
      { type: 'message.finished', ...ids, index: 0, status: 'aborted' },
      { type: 'turn.finished', ...ids, status: 'canceled', stopReason: 'aborted' },
    ],
    3,
  )
  const chunks = [...first, ...take(stream, rest)]
  expect(fold(chunks)).toEqual({ 0: [{ text: 'ab' }] })
  expect(chunks.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_CANCELED' } } })
  expect(chunks[0]).toMatchObject({ task: { status: { state: 'TASK_STATE_WORKING' } } })
  expect(chunks.filter(isTerminal)).toHaveLength(1)
})

function isTerminal(chunk: A2aChunk): boolean {
  return 'statusUpdate' in chunk && endsStream(chunk.statusUpdate.status)
}

/** As A2A defines `append`. What was made empty is gone. */
function fold(chunks: readonly A2aChunk[]): Record<string, Part[]> {
  const artifacts: Record<string, Part[]> = {}
  for (const chunk of chunks) {
    if ('task' in chunk) for (const { artifactId, parts } of chunk.task.artifacts) artifacts[artifactId] = parts
    if (!('artifactUpdate' in chunk)) continue
    const { artifact, append } = chunk.artifactUpdate
    artifacts[artifact.artifactId] = append ? [{ text: textOf(artifacts[artifact.artifactId]) + textOf(artifact.parts) }] : artifact.parts
  }
  return withoutEmpty(Object.entries(artifacts).map(([artifactId, parts]) => ({ artifactId, parts })))
}

function stored(log: Entry[]): Record<string, Part[]> {
  return withoutEmpty(messagesOf(stateOf(log)).flatMap(message => artifactOf(message) ?? []))
}

function withoutEmpty(artifacts: Artifact[]): Record<string, Part[]> {
  return Object.fromEntries(
    artifacts.flatMap(({ artifactId, parts }) => (JSON.stringify(parts) === '[{"text":""}]' ? [] : [[artifactId, parts]])),
  )
}

function textOf(parts: Part[] | undefined): string {
  return (parts ?? []).map(part => ('text' in part ? part.text : '')).join('')
}
