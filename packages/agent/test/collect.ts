/** Test helpers for streams of updates. */
import { createTurnComposer, type Update } from '@rivulet/protocol'
import type { EventStream } from '../src/model/event-stream.ts'

/** Every update of the stream, its result, and the error that both views threw. */
export async function collect<R>(stream: EventStream<Update, R>): Promise<{ updates: Update[]; result: R | undefined; error: unknown }> {
  const updates: Update[] = []
  let error: unknown
  try {
    for await (const update of stream) updates.push(update)
  } catch (thrown) {
    error = thrown
  }
  const result = await stream.result.catch(reason => {
    if (reason !== error) throw new Error('The result rejected with another error than the iterator threw')
    return undefined
  })
  return { updates, result, error }
}

/** One line per update; adjacent text deltas of a message are merged. */
export function lines(updates: readonly Update[]): string[] {
  const merged: string[] = []
  for (const update of updates) {
    const line = lineOf(update)
    const last = merged.at(-1)
    const prefix = update.type === 'delta' && 'text' in update.delta ? `${update.index} ${update.delta.type} ` : null
    if (prefix && last?.startsWith(prefix)) merged[merged.length - 1] = last + line.slice(prefix.length)
    else merged.push(line)
  }
  return merged
}

/** The messages that the platform would store. Strict: an update that breaks the protocol's rules throws. */
export function folded(updates: readonly Update[]) {
  const composer = createTurnComposer({ task: '', turn: 1, attempt: 1, firstIndex: 0 })
  for (const update of updates) {
    if (update.type !== 'custom') composer.compose(update, { strict: true })
  }
  return composer.messages()
}

function lineOf(update: Update): string {
  switch (update.type) {
    case 'start': {
      const { content } = update
      const call = 'callId' in content ? ` ${content.callId} ${content.name}` : ''
      return `${update.index} start ${content.type}${call}`
    }
    case 'delta': {
      const { delta } = update
      return 'text' in delta ? `${update.index} ${delta.type} ${delta.text}` : `${update.index} ${JSON.stringify(delta)}`
    }
    case 'full':
      return `${update.index} full ${JSON.stringify('content' in update.content ? update.content.content : update.content)}${'isError' in update.content && update.content.isError ? ' error' : ''}`
    case 'done':
      return [update.index, 'done', update.status, update.stopReason].filter(part => part !== undefined).join(' ')
    case 'custom':
      return `custom ${update.name}`
    default:
      return update satisfies never
  }
}
