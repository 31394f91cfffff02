/** Closes the waits of a thread's turn with what the client responds: the entries of `resume`, and the results of tools that it runs. */
import type { RunInput } from '@rivulet/contract/ag-ui'
import { type Json, type Limits, RivuletError, type TaskId, waitIdSchema } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import { createAnswerWaits } from '../../http/requests/answer-waits.ts'
import { parseCallerText } from '../../http/requests/json-body.ts'
import type { Services } from '../../http/services.ts'
import { turnMessagesNow } from '../../log/live-messages.ts'
import type { Database } from '../../store/connection/database.ts'
import { startedTurn } from '../../store/reads/turns.ts'
import { getWait } from '../../store/waits/answer-wait.ts'
import { callIdOf } from './ag-ui-message.ts'
import { answerOf, type ResumeEntry } from './interrupts.ts'
import { toolResults } from './run-input.ts'

/** `turnNumber` is that of the turn that goes on; null where nothing was answered. */
type GivenAnswers = { answered: ReadonlySet<string>; turnNumber: number | null }

export function createThreadAnswers(services: Pick<Services, 'config' | 'databaseFor' | 'reader' | 'waiting' | 'metrics' | 'refusals'>) {
  const { config, databaseFor, reader } = services
  const answerWaits = createAnswerWaits(services)
  return { answer }

  async function answer(request: FastifyRequest, task: TaskId, input: RunInput): Promise<GivenAnswers> {
    const { tenant } = request.principal
    const db = databaseFor(request.principal)
    const entries = [...(input.resume ?? []), ...(await toolEntries(db, tenant, task, input))]
    const waits = await Promise.all(entries.map(({ interruptId }) => getWait(db, tenant, task, idOf(interruptId))))
    const responses = waits.flatMap((wait, place) => {
      const entry = entries[place]
      return entry ? [{ wait: wait.id, answer: answerOf(wait, entry) }] : []
    })
    await answerWaits(request, task, responses)
    return { answered: new Set(waits.map(({ id }) => id)), turnNumber: waits.at(-1)?.turn ?? null }
  }

  async function toolEntries(db: Database, tenant: string, task: TaskId, input: RunInput): Promise<ResumeEntry[]> {
    const results = toolResults(input)
    if (results.size === 0) return []
    const turn = await startedTurn(db, tenant, task)
    const open = (turn?.waits ?? []).filter(({ kind, status }) => kind === 'tool' && status === 'open')
    if (!turn || open.length === 0) return []
    const messages = await turnMessagesNow(db, reader, tenant, task, turn.number)
    return open.flatMap(wait => {
      const request = messages.findLast(({ content }) => content.type === 'tool_request' && content.callId === wait.callId)
      const result = request && results.get(callIdOf(request))
      return result === undefined
        ? []
        : [{ interruptId: wait.id, status: 'resolved' as const, payload: parseResult(result, config.limits) }]
    })
  }
}

function idOf(interruptId: string): string {
  const { data } = waitIdSchema.safeParse(interruptId)
  if (data === undefined) throw new RivuletError('not_found', 'No such interrupt in this thread')
  return data
}

/** Clients send results as text. */
function parseResult(result: string, limits: Limits): Json {
  const value = parseCallerText(result, limits, '/messages')
  return value === undefined ? result : value
}
