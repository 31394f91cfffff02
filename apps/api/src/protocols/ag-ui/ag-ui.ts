/**
 * AG-UI 1.0, below `/ag-ui`: a thread is a task, a run is one segment of a turn. A run goes on when its client leaves; any client that may read the
 * task connects to it, and resumes after the last event it has.
 */
import { createHash } from 'node:crypto'
import * as contract from '@rivulet/contract/ag-ui'
import { createTaskBody } from '@rivulet/contract/tasks'
import { requireCursor, type TaskId } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { orGiveBack } from '../../access/open-streams.ts'
import type { Protocol } from '../../http/protocol.ts'
import { createAcceptTurn } from '../../http/requests/accept-turn.ts'
import { createAudit } from '../../http/requests/audited.ts'
import type { EventStream } from '../../http/routes/tasks/events.ts'
import { serve } from '../../http/serve.ts'
import type { Services } from '../../http/services.ts'
import { requireAgent } from '../../store/agents/agents.ts'
import { taskNotFound } from '../../store/connection/tenant.ts'
import { listMessages } from '../../store/reads/messages.ts'
import { findRun, findThread } from '../../store/reads/threads.ts'
import { agUiDialect } from './ag-ui-dialect.ts'
import type { AgUiRun } from './ag-ui-stream.ts'
import { historyOf, lastInput, paramsOf } from './run-input.ts'
import { createThreadAnswers } from './thread-responses.ts'

type Begun = Pick<AgUiRun, 'task' | 'turnNumber' | 'known' | 'answered' | 'input'> & { dispatch?: () => void }

export const agUi: Protocol = async ({ app, services, events, admit }) => {
  await app.register(
    async scope => {
      admit(scope)
      agUiRoutes(scope, services, events)
    },
    { prefix: '/ag-ui' },
  )
}

function agUiRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, ending, relay, config } = services
  const { requireShare, accept } = createAcceptTurn(services, scope.log)
  const { note } = createAudit(services)
  const answers = createThreadAnswers(services)

  serve(scope, contract.runAgent, async (request, reply) => {
    const { threadId, runId } = request.body
    // A client that did not receive the response repeats the request with the same run.
    request.headers['idempotency-key'] ??= createHash('sha256')
      .update(JSON.stringify([threadId, runId]))
      .digest('hex')
    await requireShare(request)
    const admission = events.reserve(request)
    const { dispatch = () => {}, ...run } = await orGiveBack(admission, begin(request, reply, request.params.agent, request.body))
    const dialect = agUiDialect({ ...run, threadId, runId, isBack: false, earlier: earlierOf(request, run.task) })
    return events.stream(run.task, reply, { cursor: null, isFollowing: true, dialect }, admission).finally(dispatch)
  })

  serve(scope, contract.watchThread, async (request, reply) => {
    const { thread: threadId } = request.params
    const task = await requireThread(request)
    const lastEventId = request.headers['last-event-id']
    const cursor = lastEventId === undefined ? null : requireCursor(lastEventId)
    const viewer = { runId: null, turnNumber: null, known: null, answered: new Set<string>(), input: null }
    const dialect = agUiDialect({ ...viewer, task, threadId, isBack: cursor !== null, earlier: earlierOf(request, task) })
    return events.stream(task, reply, { cursor, isFollowing: true, dialect })
  })

  serve(scope, contract.cancelThread, async request => {
    const task = await requireThread(request)
    await ending.cancel(request.principal, task, {}, note(request, { target: task }))
    relay.kick()
    return { threadId: request.params.thread }
  })

  async function requireThread({ principal, params }: FastifyRequest): Promise<TaskId> {
    const { agent, thread } = contract.ofThread.parse(params)
    const task = await findThread(databaseFor(principal), principal.tenant, agent, thread)
    if (!task) throw taskNotFound()
    return task
  }

  /** Closes waits with the client's responses, and accepts a new input. Without either, the client gets the run that the thread has. */
  async function begin(request: FastifyRequest, reply: FastifyReply, agent: string, input: contract.RunInput): Promise<Begun> {
    const { tenant } = request.principal
    const db = databaseFor(request.principal)
    const task = await findThread(db, tenant, agent, input.threadId)
    if (!task && input.resume?.length) throw taskNotFound()
    const given = task ? await answers.answer(request, task, input) : null
    const answered = given?.answered ?? new Set<string>()
    const last = lastInput(input)
    const known = answered.size > 0 ? null : new Set(input.messages.map(({ id }) => id))
    if (task && (!last || (await isKnown(request, task, last.message.id)))) {
      const turnNumber = given?.turnNumber ?? (await findRun(db, tenant, task, 'ag-ui', { name: 'run', id: input.runId }))
      return { task, turnNumber, known: null, answered, input: null }
    }
    const inputMetadata = { 'ag-ui': { run: input.runId, ...(last && { message: last.message.id }) } }
    const content = last && (last.input.length > 1 ? last.input : last.input[0])
    const params = paramsOf(await requireAgent(db, tenant, agent), input)
    const history = task ? [] : historyOf(input, last !== null, config.limits)
    const body = {
      ...createTaskBody.parse({ agent, name: input.threadId }),
      ...(params && { params }),
      ...(history.length > 0 && { history }),
    }
    const accepted = await accept(
      request,
      reply,
      task && content
        ? { of: 'task', task, agent, input: content, inputMetadata, params, ifBusy: 'decline' }
        : { of: 'new task', body: { ...body, ...(content && { input: content }) }, inputMetadata },
    )
    return {
      task: accepted.task.id,
      turnNumber: accepted.turn.number,
      known,
      answered,
      input: last?.message ?? null,
      dispatch: accepted.dispatch,
    }
  }

  async function isKnown({ principal }: FastifyRequest, task: TaskId, message: string): Promise<boolean> {
    if (message.startsWith(`${task}:`)) return true
    return (await findRun(databaseFor(principal), principal.tenant, task, 'ag-ui', { name: 'message', id: message })) !== null
  }

  /** The latest of the messages before an index. */
  function earlierOf({ principal }: FastifyRequest, task: TaskId): AgUiRun['earlier'] {
    const limit = 200
    return async index => {
      const { data } = await listMessages(
        databaseFor(principal),
        principal.tenant,
        task,
        { after: index - limit - 1, limit },
        config.limits.pageBytes,
        'kept',
      )
      return data.filter(message => message.index < index)
    }
  }
}
