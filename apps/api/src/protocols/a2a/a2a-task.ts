/**
 * A turn as a task of A2A 1.0. A task of A2A ends and takes no more messages, so it is a turn; its context is our task.
 *
 * The texts, data and media of the agent are its artifacts. What the turn asks for is in the message of its status.
 */
import {
  type FoldedTurn,
  hasEnded,
  hasOpenQuestion,
  isAnsweredByRequest,
  type Json,
  type JsonObject,
  type Message,
  outcomeOf,
  type TaskId,
  type Wait,
} from '@rivulet/protocol'

export type Part =
  | { text: string }
  | { data: Json }
  | { raw: string; mediaType: string; filename?: string }
  | { url: string; mediaType: string; filename?: string }

export type TaskState = `TASK_STATE_${'SUBMITTED' | 'WORKING' | 'INPUT_REQUIRED' | 'COMPLETED' | 'FAILED' | 'CANCELED'}`

export type A2aMessage = { messageId: string; role: 'ROLE_USER' | 'ROLE_AGENT'; parts: Part[]; taskId: string; contextId: string }
export type Artifact = { artifactId: string; parts: Part[] }
export type A2aStatus = { state: TaskState; message?: A2aMessage; timestamp?: string }
export type A2aTask = { id: string; contextId: string; status: A2aStatus; artifacts: Artifact[]; history: A2aMessage[] }

/** The ids of a task of A2A. */
/** `contextId`: the name of the task, which may be an id of its client's own, or else the id of the task. */
export type A2aIds = { task: TaskId; turnId: string; contextId: string }

/** The fields of a turn that its task shows. */
export type TurnState = Pick<FoldedTurn, 'status' | 'waits' | 'error' | 'queuedAt' | 'startedAt' | 'finishedAt'>

/** @param historyLength how many of the latest inputs the task shows. Default: all. */
export function a2aTask(ids: A2aIds, turn: TurnState, messages: readonly Message[], historyLength?: number): A2aTask {
  const inputs = messages.filter(({ author }) => author === 'user')
  const history = historyLength === undefined ? inputs : historyLength === 0 ? [] : inputs.slice(-historyLength)
  return {
    ...{ id: ids.turnId, contextId: ids.contextId, status: statusOf(ids, turn) },
    artifacts: messages.flatMap(message => artifactOf(message) ?? []),
    history: history.map(input => ({ ...aboutMessage(ids, `${ids.task}:${input.index}`), role: 'ROLE_USER', parts: partsOf(input) })),
  }
}

/** @param answered waits that the caller has just responded to, which may still be open here. */
export function statusOf(ids: A2aIds, turn: TurnState, answered: ReadonlySet<string> = new Set()): A2aStatus {
  const timestamp = turn.finishedAt ?? turn.startedAt ?? turn.queuedAt
  return { ...stateOf(ids, turn, answered), ...(timestamp !== undefined && { timestamp }) }
}

function stateOf(ids: A2aIds, { status, waits = [], error }: TurnState, answered: ReadonlySet<string>): A2aStatus {
  if (hasEnded(status)) {
    const outcome = outcomeOf(status)
    if (outcome !== 'failed') return { state: outcome === 'completed' ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_CANCELED' }
    return { state: 'TASK_STATE_FAILED', message: spoken(ids, 'failed', [{ text: error?.message ?? 'The turn failed' }]) }
  }
  const open = waits.filter(({ id, kind, status: state }) => state === 'open' && isAnsweredByRequest(kind) && !answered.has(id))
  if (hasOpenQuestion(open))
    return { state: 'TASK_STATE_INPUT_REQUIRED', message: spoken(ids, open.map(({ id }) => id).join('.'), open.flatMap(questionParts)) }
  return { state: status === 'queued' ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_WORKING' }
}

/** Whether a stream of the task ends with this status. */
export function endsStream({ state }: A2aStatus): boolean {
  return state !== 'TASK_STATE_SUBMITTED' && state !== 'TASK_STATE_WORKING'
}

/** Null for what is not an output of the agent. Data and media are shown when they are whole. */
export function artifactOf(message: Message): Artifact | null {
  const { author, content, index, status } = message
  const isShown = content.type === 'text' || ((content.type === 'data' || content.type === 'media') && status !== 'streaming')
  return author === 'agent' && isShown ? { artifactId: `${index}`, parts: partsOf(message) } : null
}

function partsOf({ content }: Message): Part[] {
  switch (content.type) {
    case 'text':
      return [{ text: content.text }]
    case 'data':
      return [{ data: content.data }]
    case 'media': {
      const { mimeType: mediaType, data, url, file, name } = content
      const about = { mediaType, ...(name !== undefined && { filename: name }) }
      return data === undefined ? [{ url: url ?? `rivulet:files/${file ?? ''}`, ...about }] : [{ raw: data, ...about }]
    }
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
      return []
    default:
      return content satisfies never
  }
}

/** Its words for people, and its data for programs. */
function questionParts({ id, kind, title, detail, schema, tool, arguments: args, actions }: Wait): Part[] {
  const data: JsonObject = { wait: id, kind, actions, ...(schema && { schema }), ...(tool !== undefined && { tool }) }
  return [
    { text: detail === undefined ? title : `${title}\n\n${detail}` },
    { data: { ...data, ...(args !== undefined && { arguments: args }) } },
  ]
}

function spoken(ids: A2aIds, name: string, parts: Part[]): A2aMessage {
  return { ...aboutMessage(ids, `${ids.turnId}:${name}`), role: 'ROLE_AGENT', parts }
}

function aboutMessage({ contextId, turnId }: A2aIds, messageId: string) {
  return { messageId, taskId: turnId, contextId }
}
