/**
 * The durable loop: takes each response of the model and each result of a tool as a step of a turn, so that the next attempt after a crash gets
 * them from memory. Steps are named by their numbers, because an attempt must find them again: a model's call ids are new in every response.
 */
import type { Duration, Json, JsonObject, SecretValues, UsageRecord, WaitAction } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import type { HistoryMessage } from '../model/model.ts'

/** What the loop needs of a turn of the platform. A `Turn` of @rivulet/worker fits. */
export type AgentTurn = {
  readonly signal: AbortSignal
  readonly span: Span
  /** Values that the errors of tools must not have. */
  readonly secrets?: SecretValues
  history(): Promise<readonly HistoryMessage[]>
  /** Numbers what has the same kind: `run 1`, `run 2` … */
  nameFor(kind: string): string
  /** Does the work, or returns its stored result. */
  step(name: string, work: () => Promise<unknown>): Promise<unknown>
  /** Inputs that came since the turn began: they become messages of it. */
  takeInputs?(place: { step: string; before: string }): Promise<readonly HistoryMessage[]>
  readonly usage?: {
    /** Counts a response whose messages may not reach the log: one that failed, or that ended after its turn. */
    note(record: UsageRecord): void
    /** Throws `budget_exceeded` when the task has used its budget. */
    checkBudget(): void
  }
  /** Asks people, or the client, and waits without a worker. */
  askAll?(questions: Record<string, ToolQuestion>): Promise<Record<string, ToolAnswer>>
  /** Creates tasks of other agents, and waits for their ends without a worker. */
  spawnEach?(children: readonly ToolChild[]): Promise<readonly ToolChildResult[]>
}

/** A child that does the work of a tool. */
export type ToolChild = { name: string; agent: string; input: string; callId: string; timeoutMs?: number }

/** What has become of it; `code` of one that was refused. */
export type ToolChildResult = { status: string; text: string; error?: { message: string } | undefined } | { code: string; message: string }

/** What a turn asks about the call of a tool. */
export type ToolQuestion = {
  kind: 'approval' | 'form' | 'tool'
  title: string
  detail?: string
  /** Of a form. */
  schema?: JsonObject
  tool: string
  callId: string
  arguments: Json
  /** An edit of the arguments has to match it. */
  argumentsSchema?: JsonObject
  actions: readonly WaitAction[]
  assignee?: string
  expiresIn?: Duration
  onExpire?: 'decline'
  hold?: Duration
}

/** `content` is JSON, because it was stored. */
export type ToolAnswer = { action: WaitAction; content?: unknown; comment?: string | undefined }

type DurableWork<T, M> = {
  work(): Promise<T>
  /** What to store of a result, as JSON, or null where the next attempt has to do it again. */
  toMemory(result: T): M | null
  fromMemory(memory: M): T
}

export type TakeDurably = <T, M>(name: string, work: DurableWork<T, M>) => Promise<T>

/** Outside a turn: does the work, and stores nothing. */
export const directly: TakeDurably = (_, { work }) => work()

/** Takes the inputs that came meanwhile, once the readers have all that was emitted. Named by the round that they come before. */
export function taking(turn: AgentTurn | undefined, name: string, settled: () => Promise<void>) {
  return async (round: number): Promise<readonly HistoryMessage[]> => {
    if (!turn?.takeInputs) return []
    await settled()
    return turn.takeInputs({ step: `${name}/inputs ${round}`, before: `${name}/model ${round}` })
  }
}

/** Asks in the turn once the readers have all that was emitted, so that no message is open. Null outside a turn that can ask. */
export function asking(turn: AgentTurn | undefined, name: string, settled: () => Promise<void>) {
  if (!turn?.askAll) return null
  return async (questions: Record<string, ToolQuestion>): Promise<Record<string, ToolAnswer>> => {
    await settled()
    const named = Object.fromEntries(Object.entries(questions).map(([step, question]) => [`${name}/${step}`, question]))
    const answers = (await turn.askAll?.(named)) ?? {}
    return Object.fromEntries(
      Object.keys(questions).flatMap(step => {
        const answer = answers[`${name}/${step}`]
        return answer ? [[step, answer]] : []
      }),
    )
  }
}

/** The same for tools that are agents. Null outside a turn that can spawn. */
export function spawning(turn: AgentTurn | undefined, name: string, settled: () => Promise<void>) {
  if (!turn?.spawnEach) return null
  return async (children: readonly ToolChild[]): Promise<readonly ToolChildResult[]> => {
    await settled()
    return (await turn.spawnEach?.(children.map(child => ({ ...child, name: `${name}/${child.name}` })))) ?? []
  }
}

/**
 * @param name What the names of the steps begin with.
 * @param settled Resolves when the readers have all that was emitted, so that what a tool sends to its turn comes after it, in every attempt.
 */
export function durably(turn: AgentTurn, name: string, settled: () => Promise<void>): TakeDurably {
  return async function take<T, M>(step: string, { work, toMemory, fromMemory }: DurableWork<T, M>): Promise<T> {
    let fresh: { result: T } | undefined
    await settled()
    const unkept = new Error('Not stored, because it has no whole result')
    try {
      const memory = await turn.step(`${name}/${step}`, async () => {
        fresh = { result: await work() }
        const kept = toMemory(fresh.result)
        if (kept === null) throw unkept
        return kept
      })
      return fresh ? fresh.result : fromMemory(memory as M)
    } catch (error) {
      if (fresh && error === unkept) return fresh.result
      throw error
    }
  }
}
