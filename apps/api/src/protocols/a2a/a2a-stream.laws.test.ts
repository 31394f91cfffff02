/** Laws of the dialect of A2A: whatever an agent emits, and wherever a client joins, resumes or misses events, it has what is stored. */
import { messagesOf } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cursorOf, type Entry, replay, snapshotOf, stateOf, take, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import { legacyChunk } from './a2a-legacy.ts'
import { type A2aChunk, openA2aStream } from './a2a-stream.ts'
import { type Artifact, artifactOf, type Part } from './a2a-task.ts'

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
    for (let place = 1; place < log.length - 2; place += 1) {
      const stream = await openA2aStream(run, undefined)
      const before = take(stream, log.slice(0, place))
      const gap = stream.take(cursorOf(log, place + 2), snapshotOf(log.slice(0, place + 2), 'gap'))
      expect(fold([...before, ...gap, ...take(stream, log.slice(place + 2))])).toEqual(stored(log))
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
