/**
 * The state of a task as AG-UI's shared state: a snapshot for a client that has none of it, a JSON patch (RFC 6902) for each change after that.
 *
 * A client has a state of its own before a run, so a patch follows a snapshot of the same run only. A task whose state was never set sends nothing,
 * because a snapshot would overwrite what the client has.
 */
import { isObject, type Json, type State } from '@rivulet/protocol'
import type { AgUiChunk } from './sent-messages.ts'

type Operation = { op: 'add' | 'replace'; path: string; value: Json } | { op: 'remove'; path: string }

export function createSharedState() {
  let shown: State | null = null
  return { send }

  /** @param state null while the log has not shown it */
  function send(state: State | null): AgUiChunk[] {
    if (state === null || state === shown || (shown === null && state.version === 0)) return []
    const before = shown
    shown = state
    const delta = before ? patchOf(before.value, state.value, '') : null
    if (delta?.length === 0) return []
    const isPatched = delta?.every(isTaken) && JSON.stringify(delta).length < JSON.stringify(state.value).length
    return [isPatched ? { type: 'STATE_DELTA', delta } : { type: 'STATE_SNAPSHOT', snapshot: state.value }]
  }
}

/** AG-UI's client rejects a patch that changes a prototype. */
function isTaken({ path }: Operation): boolean {
  return !/\/(__proto__|constructor\/prototype)(\/|$)/.test(path)
}

/** The operations that turn one value into the other. Objects are compared by their fields; anything else that differs is replaced. */
function patchOf(before: Json, after: Json, path: string): Operation[] {
  if (before === after) return []
  if (!isObject(before) || !isObject(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ op: 'replace', path, value: after }]
  const removed = Object.keys(before).filter(key => !Object.hasOwn(after, key))
  const changes = Object.entries(after).flatMap(([key, value]): Operation[] => {
    const known = Object.hasOwn(before, key) ? before[key] : undefined
    return known === undefined ? [{ op: 'add', path: pathOf(path, key), value }] : patchOf(known, value, pathOf(path, key))
  })
  return [...removed.map((key): Operation => ({ op: 'remove', path: pathOf(path, key) })), ...changes]
}

function pathOf(path: string, key: string): string {
  return `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
}
