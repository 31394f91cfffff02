/**
 * A run of the SDK whose tools need approvals (`needsApproval`). Each stretch of the run, up to its next interruptions, is a step of the turn, which
 * remembers the run's state. So the turn waits for people without a worker, and neither model nor tool is called again when it goes on.
 */
import type { Json } from '@rivulet/protocol'
import type { Turn } from '../turn/turn.ts'
import type { AskOptions } from '../turn/waits/ask.ts'
import { currentTurn } from './current-turn.ts'
import { fieldsOf } from './model-events.ts'

/** The SDK's `RunToolApprovalItem`. */
type InterruptionLike = { rawItem: object }

/** The SDK's `RunState`. */
export type RunStateLike = {
  getInterruptions(): InterruptionLike[]
  approve(interruption: never): void
  reject(interruption: never, options?: { message?: string }): void
  toString(): string
}

export type RunLike<S> = { state: S; finalOutput?: unknown }

export type ApprovedRun<S> = {
  /** Runs the agent: from its input when there is no state. */
  run: (state: S | null) => Promise<RunLike<S>>
  /** `text => RunState.fromString(agent, text)` */
  restore: (text: string) => Promise<S>
  /** What a question has besides: its assignee, how long it is held. */
  ask?: Partial<Pick<AskOptions, 'assignee' | 'expiresIn' | 'hold' | 'detail'>>
}

type Stretch = { state: string; isInterrupted: boolean; output: Json; calls: string[]; responses: string[] }

/** Resolves with the final output of the run. */
export async function runWithApprovals<S extends RunStateLike>(turn: Turn, { run, restore, ask = {} }: ApprovedRun<S>): Promise<Json> {
  let state: S | null = null
  for (let number = 1; ; number += 1) {
    const from = state
    const stretch = await turn.step(`run ${number}`, () => play(() => run(from)))
    if (!stretch.isInterrupted) return stretch.output
    recall(stretch)
    state = await restore(stretch.state)
    await decide(turn, state, number, ask)
  }
}

async function play<S extends RunStateLike>(run: () => Promise<RunLike<S>>): Promise<Stretch> {
  const { state, finalOutput = null } = await run()
  const told = currentTurn()
  return {
    state: state.toString(),
    isInterrupted: state.getInterruptions().length > 0,
    output: finalOutput as Json,
    calls: [...(told?.calls ?? [])],
    responses: [...(told?.responses.keys() ?? [])],
  }
}

/** What the stretch has told, for a process that has not seen it. */
function recall({ calls, responses }: Stretch): void {
  const told = currentTurn()
  for (const callId of calls) told?.calls.add(callId)
  for (const callId of responses) if (!told?.responses.has(callId)) told?.responses.set(callId, null)
}

/** All questions of a stretch are asked at once. */
async function decide(turn: Turn, state: RunStateLike, number: number, ask: object): Promise<void> {
  const interruptions = state.getInterruptions()
  const nameOf = (interruption: InterruptionLike) => `${number} ${callOf(interruption).callId}`
  const answers = await turn.askAll(
    Object.fromEntries(interruptions.map(interruption => [nameOf(interruption), { ...questionOf(interruption), ...ask }])),
  )
  for (const interruption of interruptions) {
    const { action, comment } = answers[nameOf(interruption)] ?? { action: 'decline' }
    if (action === 'accept') state.approve(interruption as never)
    else state.reject(interruption as never, comment ? { message: `Declined: ${comment}` } : {})
  }
}

function questionOf(interruption: InterruptionLike) {
  const { tool, ...call } = callOf(interruption)
  return { title: `Run ${tool}?`, tool, ...call, actions: ['accept', 'decline'] as const, onExpire: 'decline' as const }
}

/** A call of a function has `callId` and `arguments`; that of a hosted tool has an `id` alone. */
function callOf({ rawItem }: InterruptionLike): { tool: string; callId: string; arguments: Json } {
  const { callId, id, name, arguments: raw } = fieldsOf(rawItem)
  return { tool: String(name ?? 'the tool'), callId: String(callId ?? id ?? ''), arguments: typeof raw === 'string' ? parsed(raw) : null }
}

function parsed(raw: string): Json {
  try {
    return JSON.parse(raw) as Json
  } catch {
    return raw
  }
}
