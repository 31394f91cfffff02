/**
 * OpenAI's conversations, below `/openai/v1`: a conversation is a task, which the agent of its first response takes over.
 *
 * Its items are added and deleted before that response alone: from then on it grows by turns.
 */

import type { HistoryMessage } from '@rivulet/contract/fields'
import * as contract from '@rivulet/contract/openai'
import { createTaskBody } from '@rivulet/contract/tasks'
import { RivuletError, type Task, type TaskId, taskIdSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createAcceptWork } from '../../../http/requests/accept-work.ts'
import { createAudit } from '../../../http/requests/audited.ts'
import { requireFiles } from '../../../http/requests/files/file-references.ts'
import { markReplay, respondOnce, sendResponse } from '../../../http/requests/idempotent.ts'
import { serve } from '../../../http/serve.ts'
import type { Services } from '../../../http/services.ts'
import { listAgents } from '../../../store/agents/agents.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { toMessage, toTask } from '../../../store/rows.ts'
import { addHistory, dropLastMessage } from '../../../store/tasks/change-history.ts'
import { changeTask } from '../../../store/tasks/change-task.ts'
import { lockTask } from '../../../store/tasks/held-task.ts'
import { removeTask } from '../../../store/tasks/remove-task.ts'
import { taskTransaction } from '../../../store/tasks/task-line.ts'
import { messagesOfItems } from '../openai-input.ts'
import { createItemReferences } from '../responses/item-references.ts'
import { secondsOf, stringsOf } from '../responses/response-object.ts'
import { createConversationItems, itemsOfTurn } from './conversation-items.ts'

export function conversationRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, announcer, config } = services
  const { accept, commitTask } = createAcceptWork(services, scope.log)
  const { note, audited } = createAudit(services)
  const references = createItemReferences(services)
  const known = createConversationItems(services)

  serve(scope, contract.createConversation, async (request, reply) => {
    const { metadata, items: given } = request.body ?? {}
    const history = await historyOf(request, given ?? [])
    const task = createTaskBody.parse({ agent: await firstAgent(request), start: false })
    const body = { ...task, ...(metadata && { metadata }), ...(history.length > 0 && { history }) }
    const { response } = await accept(request, traceparent => commitTask(request, body, traceparent))
    markReplay(reply, response.replayed)
    // Entities are JSON by construction.
    return conversationOf((response.body as unknown as { task: Task }).task)
  })

  serve(scope, contract.getConversation, async request =>
    conversationOf(await getTask(databaseFor(request.principal), request.principal.tenant, idOf(request))),
  )

  serve(scope, contract.updateConversation, async request => {
    const { principal, body } = request
    const id = idOf(request)
    return taskTransaction(databaseFor(principal.tenant), id, async tx => {
      const { metadata: before } = await lockTask(tx, principal, id)
      // All of it is replaced, but for what OpenAI's metadata cannot have.
      const removed = Object.fromEntries(Object.keys(stringsOf(before)).map(name => [name, null]))
      const changed = await changeTask(tx, principal, id, { metadata: { ...removed, ...body.metadata } }, config.limits.bodyBytes)
      await note(request, { target: id, details: { fields: ['metadata'] } })(tx)
      return conversationOf(toTask(changed))
    })
  })

  serve(scope, contract.deleteConversation, async request => {
    const { principal } = request
    const id = idOf(request)
    await audited(databaseFor(principal.tenant), request, { target: id }, tx => removeTask(tx, principal, id))
    // The log of a task that has ended expires by itself, too.
    await announcer.remove(id).catch(() => {})
    return { id, object: 'conversation.deleted', deleted: true as const }
  })

  serve(scope, contract.createConversationItems, async (request, reply) => {
    const { principal } = request
    const id = idOf(request)
    const history = await historyOf(request, request.body.items)
    const response = await respondOnce(
      databaseFor(principal.tenant),
      request,
      async tx => {
        const added = (await addHistory(tx, principal, id, history)).map(toMessage)
        await note(request, { target: id, details: { fields: ['items'] } })(tx)
        return { status: 200, body: JSON.parse(JSON.stringify(listOf(itemsOfTurn(importedTurn, added), false))) }
      },
      { task: id },
    )
    return sendResponse(reply, response)
  })

  serve(scope, contract.listConversationItems, async request => {
    const { data, hasMore } = await known.list({ principal: request.principal, task: idOf(request), page: request.query })
    return listOf(data, hasMore)
  })

  serve(scope, contract.getConversationItem, async request => known.find(request.principal, idOf(request), request.params.item))

  serve(scope, contract.deleteConversationItem, async request => {
    const { principal } = request
    const id = idOf(request)
    const index = indexOf(request.params.item, id)
    const task = await taskTransaction(databaseFor(principal.tenant), id, async tx => {
      await dropLastMessage(tx, principal, id, index)
      await note(request, { target: id, details: { fields: ['items'] } })(tx)
      return lockTask(tx, principal, id)
    })
    return conversationOf(toTask(task))
  })

  /** A task has an agent from its beginning. The first response of a conversation may be that of another one. */
  async function firstAgent({ principal }: FastifyRequest): Promise<string> {
    const [first] = await listAgents(databaseFor(principal), principal.tenant, config.leaseMs)
    if (!first) throw new RivuletError('unknown_agent', 'No worker has registered an agent yet')
    return first.name
  }

  async function historyOf({ principal }: FastifyRequest, given: readonly contract.InputItem[]): Promise<HistoryMessage[]> {
    const history = messagesOfItems(await references.resolve(principal, given), config.limits).flat()
    await requireFiles(databaseFor, principal, { history }, true)
    return history
  }
}

/** Items that were added without a response, of whatever turns. */
const importedTurn = { status: 'completed' } as const

function conversationOf({ id, createdAt, metadata }: Task) {
  return { id, object: 'conversation', created_at: secondsOf(createdAt), metadata: stringsOf(metadata) }
}

function listOf(data: readonly { id: string }[], hasMore: boolean) {
  return { object: 'list' as const, data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: hasMore }
}

function idOf({ params: { id } }: { params: { id: string } }): TaskId {
  const parsed = taskIdSchema.safeParse(id)
  if (!parsed.success) throw new RivuletError('task_not_found', 'No such conversation')
  return parsed.data
}

function indexOf(item: string, task: TaskId): number {
  const [, own, index] = /^\w+_([^.]{36})\.(\d{1,9})\.\d{1,9}$/.exec(item) ?? []
  if (own !== task || index === undefined) throw new RivuletError('not_found', 'No such item in this conversation')
  return Number(index)
}
