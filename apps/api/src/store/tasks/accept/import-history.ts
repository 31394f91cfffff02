/**
 * Gives a task the messages of a conversation that took place elsewhere, as turns that have ended. A turn begins where the user speaks after
 * the agent, so that the turns of an import are those that the platform would have made.
 */
import type { HistoryMessage } from '@rivulet/contract/fields'
import type { Transaction } from '../../connection/database.ts'
import { referToFiles } from '../../files/file-references.ts'
import type { MessageRow, TaskRow, TurnRow } from '../../rows.ts'
import { messages, turns } from '../../schema.ts'
import { newTurn } from './queue-turn.ts'

/** Rows of one statement: Postgres takes at most 65,535 parameters. */
const mostRows = 1_000

/** The places of the first message and of its turn. */
type Start = { index: number; turn: number }

export async function importHistory(
  tx: Transaction,
  task: TaskRow,
  history: readonly HistoryMessage[],
  start: Start = { index: 0, turn: 1 },
): Promise<void> {
  const rows = messageRows(task, history, start)
  const ended = turnRows(task, rows, start)
  for (let at = 0; at < ended.length; at += mostRows) await tx.insert(turns).values(ended.slice(at, at + mostRows))
  for (let at = 0; at < rows.length; at += mostRows) await tx.insert(messages).values(rows.slice(at, at + mostRows))
  await referToFiles(
    tx,
    task,
    rows.map(({ content }) => content),
  )
}

function messageRows(task: TaskRow, history: readonly HistoryMessage[], start: Start): MessageRow[] {
  let number = start.turn
  return history.map(({ author, content, metadata = {} }, place): MessageRow => {
    if (author === 'user' && history[place - 1]?.author === 'agent') number += 1
    return {
      ...{
        task: task.id,
        tenant: task.tenant,
        index: start.index + place,
        turn: number,
        attempt: 1,
        author,
        content,
        metadata,
        status: 'complete',
      },
      ...{ stopReason: null, usage: null, response: null, error: null, createdAt: task.createdAt, finishedAt: task.createdAt },
    }
  })
}

function turnRows(task: TaskRow, rows: readonly MessageRow[], { turn: first }: Start): TurnRow[] {
  const count = (rows.at(-1)?.turn ?? first - 1) - first + 1
  return Array.from({ length: count }, (_, place): TurnRow => {
    const number = first + place
    const own = rows.filter(({ turn }) => turn === number)
    const inputs = firstInputs(own)
    const last = inputs.at(-1)
    const at = task.createdAt
    return {
      ...newTurn(task, number, last ? { input: inputs.map(({ content }) => content) } : {}),
      ...{ status: 'completed', stopReason: 'stop', attempt: 1, announced: true },
      ...{ queuedAt: at, startedAt: at, finishedAt: at, runAt: at, deadline: at },
      firstIndex: last ? last.index + 1 : (own[0]?.index ?? 0),
    }
  })
}

/** The first messages of the user that follow each other. */
function firstInputs(own: readonly MessageRow[]): readonly MessageRow[] {
  const spoken = own.slice(own.findIndex(({ author }) => author === 'user'))
  const end = spoken.findIndex(({ author }) => author !== 'user')
  return end < 0 ? spoken : spoken.slice(0, end)
}
