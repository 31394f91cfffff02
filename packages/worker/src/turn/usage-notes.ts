/**
 * Sends the server what the log of a turn may not have of its usage: calls that no message carries, responses that ended after their turn, and the
 * messages of a turn that this worker has lost. The server counts a record by its id, so it may be sent twice.
 */
import { maxUsageRecords, RivuletError, type UsageRecord } from '@rivulet/protocol'

export type UsageNotes = {
  /** Sends records; does not wait for it. */
  send(records: readonly UsageRecord[]): void
  /** Resolves when all that was sent has arrived, or could not be sent. */
  settled(): Promise<void>
  /** What the server has said of the budget. */
  learn(isOverBudget: boolean): void
  checkBudget(): void
}

export type UsageNotesDeps = {
  /** Resolves with whether the task has used its budget. */
  deliver: (records: UsageRecord[]) => Promise<boolean>
  onError: (error: unknown) => void
}

export function createUsageNotes({ deliver, onError }: UsageNotesDeps): UsageNotes {
  const underWay = new Set<Promise<void>>()
  let isOverBudget = false
  return { send, settled: async () => void (await Promise.all(underWay)), learn, checkBudget }

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

  function checkBudget(): void {
    if (isOverBudget) throw new RivuletError('budget_exceeded', 'The task has used its budget')
  }
}
