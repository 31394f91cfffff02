/**
 * The items of a conversation: the messages of its turns as items, with what the turns ask and the responses to it between them.
 *
 * An item is a function of its turn, so a page is read turn by turn, and an item is found by the turn that its id names.
 */
import type { LogReader } from '@rivulet/broker'
import { hasEnded, type Message, RivuletError, type TaskId, type Turn, waitIdSchema } from '@rivulet/protocol'
import type { Principal } from '../../../access/principal.ts'
import type { Services } from '../../../http/services.ts'
import { listLiveMessages, turnMessagesNow } from '../../../log/live-messages.ts'
import { getTurn, startedTurnNumbers } from '../../../store/reads/turns.ts'
import { getWait } from '../../../store/waits/answer-wait.ts'
import { answerItem, inputItem } from '../responses/input-items.ts'
import { itemOf, questionItem, sourcesOf } from '../responses/output-item.ts'
import { questionsOf } from '../responses/segment.ts'

export type ConversationItem = { id: string }
type ItemPage = { after?: string | undefined; limit: number; order: 'asc' | 'desc' }

export function createConversationItems({
  databaseFor,
  reader,
  config: { limits },
}: Pick<Services, 'databaseFor' | 'config'> & { reader: LogReader }) {
  return { list, find }

  async function list({ principal, task, page }: { principal: Principal; task: TaskId; page: ItemPage }) {
    const { after, limit, order } = page
    const { tenant } = principal
    const db = databaseFor(principal)
    const from = after === undefined ? null : await turnOf(principal, task, after)
    // All items of the first one may be before the page. A turn without any is rare: then the page is short, and is not the last.
    const most = limit + 2
    const numbers = await startedTurnNumbers(db, tenant, task, { from, order, limit: most })
    const items: ConversationItem[] = []
    let bytes = 0
    let looked = 0
    while (looked < numbers.length && items.length <= limit && bytes <= limits.pageBytes) {
      const own = await itemsOf(principal, task, numbers[looked] ?? 0)
      const ordered = order === 'asc' ? own : own.toReversed()
      const behind = looked === 0 && after !== undefined ? ordered.slice(placeIn(ordered, after) + 1) : ordered
      bytes += Buffer.byteLength(JSON.stringify(behind))
      items.push(...behind)
      looked += 1
    }
    const data = items.slice(0, limit)
    return { data, hasMore: items.length > data.length || looked < numbers.length || numbers.length === most }
  }

  async function find(principal: Principal, task: TaskId, id: string): Promise<ConversationItem> {
    const items = await itemsOf(principal, task, await turnOf(principal, task, id))
    return items[placeIn(items, id)] ?? noItem()
  }

  async function itemsOf(principal: Principal, task: TaskId, turnNumber: number): Promise<ConversationItem[]> {
    const { tenant } = principal
    const db = databaseFor(principal)
    const turn = await getTurn(db, tenant, task, turnNumber)
    return itemsOfTurn(turn, await turnMessagesNow(db, reader, tenant, task, turnNumber))
  }

  async function turnOf(principal: Principal, task: TaskId, id: string): Promise<number> {
    const { tenant } = principal
    const db = databaseFor(principal)
    const place = placeOf(id, task)
    if (place === null) return noItem()
    if ('wait' in place) return (await getWait(db, tenant, task, place.wait)).turn ?? noItem()
    const { data } = await listLiveMessages(db, reader, tenant, task, { after: place.index - 1, limit: 1 }, 1)
    return data[0]?.index === place.index ? data[0].turn : noItem()
  }
}

/** In the order of the conversation: a question is behind the messages before it, and its response behind it. */
export function itemsOfTurn({ status, waits }: Pick<Turn, 'status' | 'waits'>, messages: readonly Message[]): ConversationItem[] {
  const isOver = hasEnded(status)
  const own = messages.filter(({ author }) => author !== 'system')
  const entries: { at: number; item: ConversationItem }[] = [
    ...messages.filter(({ author }) => author !== 'agent').map(message => ({ at: message.index, item: inputItem(message) })),
    ...sourcesOf(own, { from: 0, to: null }).map(source => ({ at: source.message.index, item: itemOf(source, isOver) })),
    ...questionsOf(waits).flatMap(wait => [questionItem(wait), ...answerItem(wait)].map(item => ({ at: wait.index - 0.5, item }))),
  ]
  return entries.toSorted((a, b) => a.at - b.at).map(({ item }) => item)
}

function placeIn(items: readonly ConversationItem[], id: string): number {
  const place = items.findIndex(item => item.id === id)
  return place < 0 ? noItem() : place
}

/** The id of an item names a message of its task, or a question, also for the response to it. */
function placeOf(id: string, task: TaskId) {
  const [, own, index, wait] = /^(?:msg|rs|ig|mcp|fc|mcpr)_([^.]{36})\.(?:(\d{1,9})\.\d{1,9}|([^.]{36}))$/.exec(id) ?? []
  if (index !== undefined) return own === task ? { index: Number(index) } : null
  const [, answered] = /^(?:fco|mcpar)_([^.]{36})$/.exec(id) ?? []
  const parsed = waitIdSchema.safeParse(own === task ? wait : answered)
  return parsed.success ? { wait: parsed.data } : null
}

function noItem(): never {
  throw new RivuletError('not_found', 'No such item in this conversation')
}
