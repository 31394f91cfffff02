/**
 * Which step the running code belongs to. Steps of several turns may be inside each other, because a step may run another turn; each turn sees
 * only its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { RivuletError, type StateChange, type Usage, type UsageRecord } from '@rivulet/protocol'

/** A step that is being taken. `within` is the step around it, which may be another turn's. */
export type Step = Scope & {
  name: string
  turn: symbol
  within: Step | undefined
  indexes: number[]
  usage: Usage | undefined
  changes: StateChange[]
  used: UsageRecord[]
  isOver: boolean
}

/** Where names are numbered: a step, or the turn outside all steps. */
type Scope = { names: Map<string, number> }

/**
 * The step that the running code belongs to. One storage for all turns: until Node 24 every storage that was ever used is kept, and looked at
 * for each promise that is made.
 */
const speaker = new AsyncLocalStorage<Step>()

type StepScopes = {
  /** A step inside the one that the calling code belongs to. */
  open(name: string): Step
  run<T>(step: Step, work: () => T): T
  /** The innermost step of this turn that the calling code belongs to. */
  current(): Step | undefined
  /** This step and the steps of this turn around it, innermost first. */
  around(step: Step | undefined): Step[]
  /** Throws if this step, or one around it, has ended. */
  checkOngoing(step: Step | undefined): void
  /** Numbers what has the same kind within the current step, so that a skipped step does not change the names of what follows it. */
  nameFor(kind: string): string
}

export function createStepScopes(): StepScopes {
  const turn = Symbol('turn')
  const outside: Scope = { names: new Map() }
  return { open, run: (step, work) => speaker.run(step, work), current, checkOngoing, around, nameFor }

  function open(name: string): Step {
    const within = speaker.getStore()
    return { name, turn, within, indexes: [], usage: undefined, changes: [], used: [], isOver: false, names: new Map() }
  }

  /** A loop, as the next one, because each delta asks. */
  function current(): Step | undefined {
    let step = speaker.getStore()
    while (step && step.turn !== turn) step = step.within
    return step
  }

  function checkOngoing(innermost: Step | undefined): void {
    for (let step = innermost; step; step = step.within)
      if (step.isOver && step.turn === turn)
        throw new RivuletError('bad_call', `Step "${step.name}" has ended: await all that it does inside the step`)
  }

  function around(innermost: Step | undefined): Step[] {
    const steps: Step[] = []
    for (let step = innermost; step; step = step.within) if (step.turn === turn) steps.push(step)
    return steps
  }

  function nameFor(kind: string): string {
    const step = current()
    const { names } = step ?? outside
    const number = (names.get(kind) ?? 0) + 1
    names.set(kind, number)
    return `${step ? `${step.name}/` : ''}${kind} ${number}`
  }
}
