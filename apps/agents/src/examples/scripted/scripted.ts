/**
 * Plays a script from the caller's `params`, in any of the three ways to stream. So tests and authors of clients can trigger every behaviour of
 * the platform.
 */
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises'
import { custom, defineAgent, delta, done, full, type MessageHandle, RivuletError, start, type Turn, type Update } from '@rivulet/worker'
import { type Script, type Step, scriptSchema, stepsOf } from './script.ts'

/** Steps between two yields to the event loop. An `await` of a settled promise does not yield, so a script of such steps would block the process. */
const stepsAtOnce = 100

type ScriptedOptions = {
  /** Whether an `exit` step may kill the process. Default false. */
  allowExit?: boolean
}

export function createScripted({ allowExit = false }: ScriptedOptions = {}) {
  return defineAgent('scripted', turn => play(turn, parseScript(turn.params)), { description: 'Plays the script in its params' })

  function play(turn: Turn, script: Script): Promise<void> | AsyncGenerator<Update, void, void> {
    const updates = perform(stepsOf(script, turn.attempt), turn, createPace(turn.signal))
    switch (script.mode) {
      case 'generator':
        return updates
      case 'autoSend':
        return turn.autoSend(updates).then(() => {})
      case 'manual':
        return playByHand(turn, updates)
      default:
        return script.mode satisfies never
    }
  }

  /** What the steps say, as updates; what they do is done on the way. */
  async function* perform(steps: readonly Step[], turn: Turn, pace: Pace): AsyncGenerator<Update, void, void> {
    for (const step of steps) {
      await pace()
      if ('start' in step) yield start(step.start.index, step.start.content, step.start.metadata)
      else if ('delta' in step) yield delta(step.delta.index, step.delta.delta)
      else if ('full' in step) yield full(step.full.index, step.full.content, step.full.metadata)
      else if ('done' in step) yield ending(step.done)
      else if ('custom' in step) yield custom(step.custom.name, step.custom.data)
      else if ('state' in step) await changeState(turn, step.state)
      else if ('sleep' in step) await sleep(step.sleep, undefined, { signal: turn.signal })
      else if ('ask' in step) await ask(turn, step.ask)
      else if ('spawn' in step) await spawn(turn, step.spawn)
      else if ('repeat' in step) yield* repeat(step.repeat, turn, pace)
      else if ('throw' in step) throw new RivuletError('agent_error', step.throw)
      else exit(step.exit)
    }
  }

  async function* repeat({ times, steps }: Repeat, turn: Turn, pace: Pace): AsyncGenerator<Update, void, void> {
    for (let i = 0; i < times; i += 1) {
      await pace()
      yield* perform(steps, turn, pace)
    }
  }

  function exit(code: number): void {
    if (!allowExit) throw new RivuletError('bad_event', 'exit is not allowed: start the worker with RIVULET_ALLOW_EXIT=1')
    process.exit(code)
  }
}

function ending({ index, usage, model }: Extract<Step, { done: unknown }>['done']): Update {
  return done(index, { ...(usage && { usage }), ...(model !== undefined && { response: { model } }) })
}

/** For an approval. The script goes on, whatever the person decides. */
async function ask(turn: Turn, { name, title = name, holdMs }: Extract<Step, { ask: unknown }>['ask']): Promise<void> {
  await turn.ask(name, { title, onExpire: 'decline', ...(holdMs !== undefined && { hold: holdMs }) })
}

async function spawn(
  turn: Turn,
  { name, agent, input, params, detached = false }: Extract<Step, { spawn: unknown }>['spawn'],
): Promise<void> {
  await turn.spawn(name, { agent, detached, ...(input !== undefined && { input }), ...(params !== undefined && { params }) })
}

function changeState({ state }: Turn, change: Extract<Step, { state: unknown }>['state']): Promise<void> {
  return 'patch' in change ? state.patch(change.patch) : state.set(change.value)
}

type Repeat = Extract<Step, { repeat: unknown }>['repeat']

/** Awaited before each step; rejects when the turn's signal has fired. */
type Pace = () => Promise<void> | undefined

function createPace(signal: AbortSignal): Pace {
  let steps = 0
  return () => {
    steps += 1
    return steps % stepsAtOnce === 0 ? nextTick(undefined, { signal }) : undefined
  }
}

/** The same updates through handles: here a step at a message that is closed, or was never started, fails. */
async function playByHand(turn: Turn, updates: AsyncIterable<Update>): Promise<void> {
  const handles = new Map<number, MessageHandle>()
  for await (const update of updates) {
    if (update.type === 'custom') {
      await turn.custom(update.name, update.data)
    } else {
      await apply(update)
    }
  }

  async function apply(update: Exclude<Update, { type: 'custom' }>): Promise<void> {
    const handle = handles.get(update.index)
    switch (update.type) {
      case 'start':
        if (handle)
          throw new RivuletError(isOpen(handle) ? 'index_out_of_order' : 'message_closed', `Message ${update.index} was started before`)
        return open(update.index, () => turn.message(update.content, update.metadata ? { metadata: update.metadata } : {}))
      case 'full':
        return handle
          ? handle.replace(update.content, update.metadata)
          : open(update.index, () => turn.send(update.content, update.metadata))
      case 'delta':
        return known(handle, update.index).append(update.delta)
      case 'done':
        return known(handle, update.index).finish(update)
      default:
        return update satisfies never
    }
  }

  async function open(index: number, create: () => MessageHandle | Promise<MessageHandle>): Promise<void> {
    handles.set(index, await create())
  }
}

function known(handle: MessageHandle | undefined, index: number): MessageHandle {
  if (!handle) throw new RivuletError('message_not_started', `Message ${index} was not started`)
  return handle
}

function isOpen(handle: MessageHandle): boolean {
  return handle.current().status === 'streaming'
}

function parseScript(params: unknown): Script {
  const parsed = scriptSchema.safeParse(params)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new RivuletError('bad_event', `Invalid script at ${issue?.path.join('.') || 'the top level'}: ${issue?.message}`, {
    cause: parsed.error,
  })
}
