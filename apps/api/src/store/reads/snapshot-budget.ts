/**
 * The size limits of a snapshot: two budgets of the same size, one for messages of ended turns and one for the values of the task and its turns.
 * A snapshot always shows what it leaves out: messages by `messagesFrom`, values by `omitted`.
 */
import { hasEnded, type Message, type Task, type Turn } from '@rivulet/protocol'

/** All messages that are free, and of the others as many as fit, the newest. A message counts with all of its JSON. */
export function newestFitting(messages: Message[], maxBytes: number, isFree: (message: Message) => boolean = () => false): Message[] {
  let bytes = 0
  let from = messages.length
  while (from > 0) {
    const message = messages[from - 1]
    if (!message) break
    if (!isFree(message)) bytes += bytesOf(message)
    if (bytes > maxBytes) break
    from -= 1
  }
  return messages.slice(from)
}

/**
 * The turns, with the inputs and params that fit beside what their task carries, from the newest turn on, up to the first that does not fit. The same
 * rule as in Postgres (`latest-turns.ts`), for what the log has added since.
 */
export function fitTurns(
  turns: readonly Turn[],
  { task, turns: stored }: { task: Task; turns: readonly Turn[] },
  maxBytes: number,
): Turn[] {
  const leftOut = new Map(stored.map(({ number, omitted = [] }) => [number, omitted]))
  let bytes = bytesOf(task.metadata) + bytesOf(task.params)
  return turns.toReversed().map(fitTurn).reverse()

  function fitTurn({ input, inputs, params, waits, omitted: _, ...turn }: Turn): Turn {
    const isOmitted = {
      ...{ input: !fits('input', inputs ?? input, turn), params: !fits('params', params, turn) },
      waits: hasEnded(turn.status) && !fits('waits', waits, turn),
    }
    const omitted = (['input', 'params', 'waits'] as const).filter(name => isOmitted[name])
    return {
      ...turn,
      ...(input !== undefined && !isOmitted.input && { input, ...(inputs && { inputs }) }),
      ...(params !== undefined && !isOmitted.params && { params }),
      ...(waits !== undefined && !isOmitted.waits && { waits }),
      ...(omitted.length > 0 && { omitted }),
    }
  }

  function fits(name: 'input' | 'params' | 'waits', value: unknown, { number }: Pick<Turn, 'number'>): boolean {
    const isLeftOut = value === undefined && leftOut.get(number)?.includes(name)
    if (value === undefined && !isLeftOut) return true
    // Nothing is measured beyond the first that does not fit.
    if (bytes <= maxBytes) bytes += isLeftOut ? Number.POSITIVE_INFINITY : bytesOf(value)
    return bytes <= maxBytes
  }
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value ?? null))
}
