/**
 * Sends the server what the log of a turn may not have of its usage: calls that no message carries, responses that ended after their turn, and the
 * messages of a turn that this worker has lost. The server counts a record by its id, so it may be sent twice.
 */
import { type Budget, costOf, maxUsageRecords, type Prices, RivuletError, tokensOf, type Usage, type UsageRecord } from '@rivulet/protocol'

export type UsageNotes = {
  /** Sends records; does not wait for it. */
  send(records: readonly UsageRecord[]): void
  /** Resolves when all that was sent has arrived, or could not be sent. */
  settled(): Promise<void>
  /** Whether the server has found the budget used. */
  learn(isOverBudget: boolean): void
  /** Counts usage for the budget at once: its record may be on its way, or be sent at the end of a step. */
  spend(usage: Usage, model: string | undefined): void
  checkBudget(): void
}

type UsageNotesDeps = {
  /** Resolves with whether the task has used its budget. */
  deliver: (records: UsageRecord[]) => Promise<boolean>
  onError: (error: unknown) => void
  /** The rest of the budget when the turn was claimed. */
  budget?: BudgetLeft | undefined
}

type BudgetLeft = Budget & { prices?: Prices | undefined }

export function createUsageNotes({ deliver, onError, budget = {} }: UsageNotesDeps): UsageNotes {
  const underWay = new Set<Promise<void>>()
  const { prices = {} } = budget
  let { tokens = Number.POSITIVE_INFINITY, usd = Number.POSITIVE_INFINITY } = budget
  let isOverBudget = false
  return { send, settled: async () => void (await Promise.all(underWay)), learn, spend, checkBudget }

  function send(records: readonly UsageRecord[]): void {
    for (let at = 0; at < records.length; at += maxUsageRecords) {
      const sent: Promise<void> = deliver(records.slice(at, at + maxUsageRecords))
        .then(learn, onError)
        .finally(() => underWay.delete(sent))
      underWay.add(sent)
    }
  }

  function learn(isOver: boolean): void {
    isOverBudget ||= isOver
  }

  function spend(usage: Usage, model: string | undefined): void {
    tokens -= countOf(tokensOf(usage))
    usd -= countOf(costOf(prices, model, usage) ?? 0)
    learn(tokens <= 0 || usd <= 0)
  }

  function checkBudget(): void {
    if (isOverBudget) throw new RivuletError('budget_exceeded', 'The task has used its budget')
  }
}

/** A count that a handler computed may be no number, or below zero: then it counts for nothing, as on the server. */
function countOf(count: number): number {
  return Number.isFinite(count) ? Math.max(count, 0) : 0
}
