/**
 * The operations of A2A on an agent, the same for each binding: send a message, read, list, cancel and follow tasks.
 *
 * A message with a task's id responds to what the task asks for, or is handed to the turn that runs. The id of a message is the key of its
 * request, so that a message that is sent again is the same turn.
 */
import { createHash } from 'node:crypto'
import type { ListParams, SendParams } from '@rivulet/contract/a2a'
import { type CreateTask, createTaskBody } from '@rivulet/contract/tasks'
import { hasEnded, hasOpenQuestion, isAnsweredByRequest, requireCursor, taskIdSchema, turnIdSchema } from '@rivulet/protocol'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { orGiveBack } from '../../access/open-streams.ts'
import { mayRead, type Principal } from '../../access/principal.ts'
import { createAcceptTurn, type WantedTurn } from '../../http/requests/accept-turn.ts'
import { createAnswerWaits } from '../../http/requests/answer-waits.ts'
import { createAudit, turnCancel } from '../../http/requests/audited.ts'
import { createTurnResults } from '../../http/requests/turn-result.ts'
import type { EventStream } from '../../http/routes/tasks/events.ts'
import type { Services } from '../../http/services.ts'
import { turnMessagesNow } from '../../log/live-messages.ts'
import { listTurns } from '../../store/agents/agent-turns.ts'
import { taskNotFound } from '../../store/connection/tenant.ts'
import { findOwnTurn, findThread } from '../../store/reads/threads.ts'
import { type TurnRow, toTurn } from '../../store/rows.ts'
import { paramsOf, RpcError } from '../json-rpc.ts'
import { a2aDialect } from './a2a-dialect.ts'
import { formatPageToken, stageOf } from './a2a-list.ts'
import { contentsOf, rejectPush, responsesOf } from './a2a-message.ts'
import type { A2aChunk } from './a2a-stream.ts'
import { type A2aTask, a2aTask } from './a2a-task.ts'

/** How a client gets a task that it has sent a message to, a task that it reads, a page of tasks, and a chunk of a stream. */
export type Binding = {
  sent(task: A2aTask): object
  task(task: A2aTask): object
  page(page: A2aPage): object
  chunk(chunk: A2aChunk): object
}

type A2aPage = { tasks: ListedTask[]; nextPageToken: string; pageSize: number; totalSize: number }
/** Without artifacts, unless they were asked for. */
type ListedTask = Omit<A2aTask, 'artifacts'> & Partial<Pick<A2aTask, 'artifacts'>>

type OwnTurn = { turn: TurnRow; name: string | null; contextId: string }
type Begun = OwnTurn & { answered: ReadonlySet<string>; dispatch?: () => void }

export function createA2aOperations(services: Services, log: FastifyBaseLogger, events: EventStream) {
  const { databaseFor, listsFor, ending, relay, capacity, reader, config } = services
  const { requireShare, accept } = createAcceptTurn(services, log)
  const answerWaits = createAnswerWaits(services)
  const { note } = createAudit(services)
  const results = createTurnResults(services)
  return { send, stream, get, list, cancel, subscribe }

  /** Responds when the turn has ended or asks for something, or at once. */
  async function send(
    request: FastifyRequest,
    reply: FastifyReply,
    agent: string,
    params: SendParams,
    binding: Binding,
  ): Promise<FastifyReply> {
    const { returnImmediately, blocking, historyLength } = params.configuration ?? {}
    const length = historyLength ?? undefined
    if (returnImmediately || blocking === false) {
      const { turn, dispatch } = await begin(request, reply, agent, params)
      dispatch?.()
      return reply.send(binding.sent(await read(request, turn.id, length)))
    }
    const admission = events.reserve(request)
    try {
      const { turn, dispatch } = await begin(request, reply, agent, params)
      dispatch?.()
      const { task, number: turnNumber } = turn
      const readTask = async () => ({ body: binding.sent(await read(request, turn.id, length)) })
      return await results.send(reply, { task, turnNumber, admission, asks: hasOpenQuestion, read: readTask })
    } catch (error) {
      admission.over()
      throw error
    }
  }

  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    agent: string,
    params: SendParams,
    binding: Binding,
  ): Promise<FastifyReply> {
    const admission = events.reserve(request)
    const { turn, contextId, answered, dispatch = () => {} } = await orGiveBack(admission, begin(request, reply, agent, params))
    const dialect = dialectOf(request, { turn, contextId }, answered, binding)
    const wanted = { cursor: null, isFollowing: true, dialect, turnNumber: turn.number }
    return events.stream(turn.task, reply, wanted, admission).finally(dispatch)
  }

  async function get(request: FastifyRequest, agent: string, id: string, historyLength: number | undefined): Promise<A2aTask> {
    return read(request, (await own(request, agent, id)).turn.id, historyLength)
  }

  /** A page ends early where its tasks would have more bytes than a page may have. */
  async function list(request: FastifyRequest, agent: string, wanted: ListParams): Promise<A2aPage> {
    const { principal } = request
    const { contextId, state, since, after, pageSize, historyLength, includeArtifacts } = wanted
    const task =
      contextId === undefined ? undefined : ((await findThread(databaseFor(principal), principal.tenant, agent, contextId)) ?? null)
    const stage = state && stageOf[state]
    const nothing = { tasks: [], nextPageToken: '', pageSize, totalSize: 0 }
    if (task === null || stage === null) return nothing
    const filter = { agent, task, stage, since }
    const { places, total } = await listTurns(listsFor(principal), principal.tenant, filter, { after, limit: pageSize + 1 })
    const tasks: ListedTask[] = []
    let [bytes, last, hasMore] = [0, after, places.length > pageSize]
    for (const place of places.slice(0, pageSize)) {
      const found = await findTask(request, place.id, historyLength)
      const shown = found && (includeArtifacts ? found : withoutArtifacts(found))
      bytes += JSON.stringify(shown).length
      const isFull = bytes > config.limits.pageBytes && tasks.length > 0
      hasMore ||= isFull
      if (isFull) break
      last = place
      if (shown) tasks.push(shown)
    }
    return { tasks, nextPageToken: hasMore && last ? formatPageToken(last) : '', pageSize, totalSize: total }
  }

  async function cancel(request: FastifyRequest, agent: string, id: string): Promise<A2aTask> {
    const { turn } = await own(request, agent, id)
    if (hasEnded(turn.status)) throw new RpcError('taskNotCancelable', 'The task has ended')
    await ending.cancelTurn(request.principal, turn.task, turn.number, note(request, turnCancel(turn)))
    relay.kick()
    return read(request, turn.id)
  }

  /** The whole task, and what follows; with `Last-Event-ID`, the task as it was there. */
  async function subscribe(
    request: FastifyRequest,
    reply: FastifyReply,
    agent: string,
    id: string,
    binding: Binding,
  ): Promise<FastifyReply> {
    const { turn, contextId } = await own(request, agent, id)
    if (hasEnded(turn.status)) throw new RpcError('unsupportedOperation', 'The task has ended; read it')
    const lastEventId = request.headers['last-event-id']
    const cursor = lastEventId === undefined ? null : requireCursor(lastEventId)
    const dialect = dialectOf(request, { turn, contextId }, new Set(), binding)
    return events.stream(turn.task, reply, { cursor, isFollowing: true, dialect, turnNumber: turn.number })
  }

  async function begin(request: FastifyRequest, reply: FastifyReply, agent: string, given: SendParams): Promise<Begun> {
    rejectPush(given)
    const { message, metadata } = given
    const { messageId, parts, taskId, contextId } = message
    request.headers['idempotency-key'] ??= createHash('sha256')
      .update(JSON.stringify(['a2a', agent, messageId]))
      .digest('hex')
    const rejection = capacity.rejection()
    if (rejection) throw rejection
    await requireShare(request)
    const found = taskId === undefined ? null : await own(request, agent, taskId)
    const running = found?.turn
    if (found && contextId !== undefined && contextId !== found.name && contextId !== found.turn.task)
      throw new RpcError('invalidParams', 'The task is of another context')
    if (running && hasEnded(running.status))
      throw new RpcError('unsupportedOperation', 'The task has ended; send the message without its id')
    const open = (running?.waits ?? []).filter(({ kind, status }) => status === 'open' && isAnsweredByRequest(kind))
    if (found && running && open.length > 0) {
      const responses = responsesOf(parts, open)
      await answerWaits(request, running.task, responses)
      return { ...found, answered: new Set(responses.map(({ wait }) => wait)) }
    }
    const contents = contentsOf(parts)
    const input = contents.length > 1 ? contents : (contents[0] ?? contents)
    const params = metadata?.params ?? undefined
    const { tenant } = request.principal
    const known = running || contextId === undefined ? null : await findThread(databaseFor(request.principal), tenant, agent, contextId)
    const task = running?.task ?? known
    const ifBusy = running ? 'inject' : 'decline'
    const wanted: WantedTurn = task
      ? { of: 'task', task, agent, input, params, ifBusy }
      : { of: 'new task', body: { ...newTask(agent, contextId), input, ...(params && { params }) } }
    const { turn, dispatch } = await accept(request, reply, wanted)
    return { ...(found ?? (await own(request, agent, turn.id))), answered: new Set(), dispatch }
  }

  async function own({ principal }: FastifyRequest, agent: string, id: string): Promise<OwnTurn> {
    const known = turnIdSchema.safeParse(id).data
    const found = known && (await findOwnTurn(databaseFor(principal), principal.tenant, known))
    if (found?.agent !== agent) throw new RpcError('taskNotFound', 'No such task')
    return { ...found, contextId: contextOf(principal, found) }
  }

  async function read(request: FastifyRequest, id: TurnRow['id'], historyLength?: number): Promise<A2aTask> {
    const task = await findTask(request, id, historyLength)
    if (!task) throw new RpcError('taskNotFound', 'No such task')
    return task
  }

  async function findTask({ principal }: FastifyRequest, id: TurnRow['id'], historyLength?: number): Promise<A2aTask | null> {
    const db = databaseFor(principal)
    const found = await findOwnTurn(db, principal.tenant, id)
    if (!found) return null
    const turn = toTurn(found.turn)
    const messages = await turnMessagesNow(db, reader, principal.tenant, turn.task, turn.joinedTo ?? turn.number)
    return a2aTask({ task: turn.task, turnId: turn.id, contextId: contextOf(principal, found) }, turn, messages, historyLength)
  }

  function dialectOf(
    request: FastifyRequest,
    { turn, contextId }: Omit<OwnTurn, 'name'>,
    answered: ReadonlySet<string>,
    { chunk }: Binding,
  ) {
    const { id, task, number } = turn
    return a2aDialect({
      run: { task, contextId, turnId: id, turnNumber: number, answered },
      wrap: chunk,
      read: async () => {
        const found = await findOwnTurn(databaseFor(request.principal), request.principal.tenant, id)
        return found && hasEnded(found.turn.status) ? read(request, id) : null
      },
    })
  }
}

function withoutArtifacts({ artifacts: _, ...task }: A2aTask): ListedTask {
  return task
}

/** The name of the task, for callers that may read it: a name is a content. */
function contextOf(principal: Principal, { turn, name }: { turn: TurnRow; name: string | null }): string {
  return (mayRead(principal) ? name : null) ?? turn.task
}

/** A context of the client's own is the name of its task. The id of a task names no new one, because only this API makes such ids. */
function newTask(agent: string, name: string | undefined): CreateTask {
  if (taskIdSchema.safeParse(name).success) throw taskNotFound()
  return paramsOf(createTaskBody, { params: { agent, ...(name !== undefined && { name }) } })
}
