/**
 * Resolves the items of earlier responses that a request names by their ids alone, as some SDKs send them instead of the items.
 *
 * An item is a function of the messages of its turn, so it is read from those and is not stored. An item of a task that the caller may not read does not
 * exist for that caller.
 */
import type { LogReader } from '@rivulet/broker'
import type { InputItem, WholeItem } from '@rivulet/contract/openai'
import { limitNames, RivuletError, type TaskId, taskIdSchema, type WaitId, waitIdSchema } from '@rivulet/protocol'
import { mayRead, type Principal } from '../../../access/principal.ts'
import type { Services } from '../../../http/services.ts'
import { listLiveMessages, turnMessagesNow } from '../../../log/live-messages.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { getWait } from '../../../store/waits/answer-wait.ts'
import { isReference, wrong } from '../openai-input.ts'
import { type Item, outputOf, type QuestionItem, questionItem } from './output-item.ts'

/** Each may be read from a turn of its own. */
const maxReferences = 200

/** The id of an item names a message of a task, or a question of one. */
type ItemPlace = { task: TaskId; index: number } | { task: TaskId; wait: WaitId }

export function createItemReferences({
  databaseFor,
  reader,
  config: { limits },
}: Pick<Services, 'databaseFor' | 'config'> & { reader: LogReader }) {
  return { resolve }

  async function resolve(principal: Principal, items: readonly InputItem[]): Promise<WholeItem[]> {
    if (items.some(isReference) && !mayRead(principal))
      throw new RivuletError('forbidden', 'A reference to an item needs the scope tasks:read')
    const references = items.filter(isReference)
    if (references.length > maxReferences) throw wrong('input', `A request has at most ${maxReferences} references to items`)
    const knownItems = new Map<string, Item | QuestionItem | null>(references.map(({ id }) => [id, null]))
    const resolved: WholeItem[] = []
    let bytes = 0
    for (const [place, item] of items.entries()) {
      if (!isReference(item)) {
        resolved.push(item)
        continue
      }
      const found = await itemOf(principal, item.id, place, knownItems)
      // A reference is short, and what it stands for counts as if the request had it.
      bytes += JSON.stringify(found).length
      if (bytes > limits.bodyBytes)
        throw new RivuletError(
          'body_too_large',
          `The items of the references may have at most ${limits.bodyBytes} bytes (${limitNames.bodyBytes})`,
        )
      resolved.push(found)
    }
    return resolved
  }

  /** Keeps only those items of the turn that the request names. */
  async function itemOf(
    principal: Principal,
    id: string,
    place: number,
    knownItems: Map<string, Item | QuestionItem | null>,
  ): Promise<WholeItem> {
    if (!knownItems.get(id))
      for (const item of await itemsBeside(principal, placeOf(id))) if (knownItems.has(item.id)) knownItems.set(item.id, item)
    const found = knownItems.get(id)
    if (!found) throw wrong(`input/${place}/id`, 'No item of a response has this id')
    return found
  }

  /** The items of the turn that has the item, because references to one turn come together. */
  async function itemsBeside(principal: Principal, place: ItemPlace | null): Promise<(Item | QuestionItem)[]> {
    if (place === null) return []
    const { tenant } = principal
    const db = databaseFor(principal)
    const { task } = place
    try {
      await getTask(db, tenant, task)
      if ('wait' in place) return [questionItem(await getWait(db, tenant, task, place.wait))]
      const { data } = await listLiveMessages(db, reader, tenant, task, { after: place.index - 1, limit: 1 }, 1)
      const [message] = data
      return message ? outputOf(await turnMessagesNow(db, reader, tenant, task, message.turn), { from: 0, to: null }, true) : []
    } catch (error) {
      if (error instanceof RivuletError && error.row.status === 404) return []
      throw error
    }
  }
}

function placeOf(id: string): ItemPlace | null {
  const [, , task = '', index = '', wait = ''] = /^(msg|rs|ig|mcp|fc|mcpr)_([^.]{36})\.(?:(\d{1,9})\.\d{1,9}|([^.]{36}))$/.exec(id) ?? []
  const parsedTask = taskIdSchema.safeParse(task)
  if (!parsedTask.success) return null
  if (index !== '') return { task: parsedTask.data, index: Number(index) }
  const parsedWait = waitIdSchema.safeParse(wait)
  return parsedWait.success ? { task: parsedTask.data, wait: parsedWait.data } : null
}
