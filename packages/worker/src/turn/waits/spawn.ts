/** The children of a turn as its handler spawns them: tasks of other agents, or of its own, that the turn waits for without a worker. */

import type { SpawnedChild, SpawnResult, WantedChildInput } from '@rivulet/contract/internal'
import type { CreateTaskInput } from '@rivulet/contract/tasks'
import {
  type Failure,
  isErrorCode,
  type Message,
  maxWaitName,
  type OutcomeStatus,
  RivuletError,
  toStorableText,
  type Wait,
} from '@rivulet/protocol'
import type { Waits } from './waits.ts'

export type SpawnOptions = {
  agent: string
  input?: CreateTaskInput['input']
  params?: CreateTaskInput['params']
  /** Goes on without the child. Default false. */
  detached?: boolean
  /** What becomes of a child that has not ended when this turn ends. Default `cancel`, and `abandon` for a detached one. */
  onParentEnd?: 'cancel' | 'abandon'
  /** For the child. Default: what its agent has, else an hour. */
  timeoutMs?: number
  /** The call of a tool that the child works for. */
  callId?: string
}

export type NamedChild = SpawnOptions & { name: string }

export type ChildResult = {
  /** The id of the child. */
  task: string
  /** `queued` for a detached child. */
  status: OutcomeStatus | 'queued'
  /** The text of its text messages, joined. */
  text: string
  /** What the child said in its first turn. */
  messages: Message[]
  error?: Failure
}

export type Spawn = {
  spawn(name: string, options: SpawnOptions): Promise<ChildResult>
  spawnAll(children: readonly NamedChild[], options?: { atMost?: number }): Promise<ChildResult[]>
  spawnEach(children: readonly NamedChild[]): Promise<SpawnOutcome[]>
}

type SpawnDeps = {
  waits: Waits
  /** The step that the calling code belongs to. */
  within: () => string | undefined
  ask: (children: WantedChildInput[]) => Promise<SpawnResult>
  /** What a child said. */
  read: (name: string) => Promise<Message[]>
}

export function createSpawn({ waits, within, ask, read }: SpawnDeps): Spawn {
  return { spawn, spawnAll, spawnEach }

  async function spawn(name: string, options: SpawnOptions): Promise<ChildResult> {
    const [result] = await spawnAll([{ ...options, name }])
    return result as ChildResult
  }

  async function spawnAll(children: readonly NamedChild[], { atMost = children.length } = {}): Promise<ChildResult[]> {
    if (children.length > 0 && (!Number.isInteger(atMost) || atMost < 1)) throw new RivuletError('bad_call', 'atMost is a number from 1')
    const results: ChildResult[] = []
    for (let at = 0; at < children.length; at += atMost) {
      for (const outcome of await spawnEach(children.slice(at, at + atMost))) {
        if ('code' in outcome) throw new RivuletError(isErrorCode(outcome.code) ? outcome.code : 'internal', outcome.message)
        results.push(outcome)
      }
    }
    return results
  }

  /** The children that were refused are values. */
  async function spawnEach(children: readonly NamedChild[]): Promise<SpawnOutcome[]> {
    const wanted = children.map(wantedOf)
    const step = within()
    if (step !== undefined)
      throw new RivuletError(
        'bad_call',
        `Child "${wanted[0]?.name}" is spawned inside step "${step}": a step is stored when it ends, so spawn outside`,
      )
    let spawned: SpawnedChild[] = []
    const closed = await waits.openBy(wanted, 0, async () => {
      const answer = await ask(wanted)
      if (answer.result !== 'spawned') return answer
      spawned = answer.children
      return { result: 'asked', waits: answer.waits, isTold: answer.isTold }
    })
    return Promise.all(
      spawned.map(child =>
        outcomeOf(
          child,
          closed.find(({ name }) => name === child.name),
        ),
      ),
    )
  }

  async function outcomeOf(child: SpawnedChild, wait: Wait | undefined): Promise<SpawnOutcome> {
    if ('error' in child) return child.error
    if (!wait) return { task: child.task, status: 'queued', text: '', messages: [] }
    const { status = 'canceled', error } = (wait.answer?.content ?? {}) as { status?: OutcomeStatus; error?: Failure }
    const messages = await read(child.name)
    const text = messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join('')
    return { task: child.task, status, text, messages, ...(error && { error }) }
  }
}

export type SpawnOutcome = ChildResult | Extract<SpawnedChild, { error: unknown }>['error']

function wantedOf({ name, detached = false, onParentEnd = detached ? 'abandon' : 'cancel', ...options }: NamedChild): WantedChildInput {
  if (typeof name !== 'string' || name === '' || name.length > maxWaitName || toStorableText(name) !== name)
    throw new RivuletError('bad_call', `The name of a child must have 1 to ${maxWaitName} characters`)
  return { ...options, name, detached, onParentEnd }
}
