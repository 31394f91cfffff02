/** What AG-UI's client 1.0 does with the events of a run, in short: it rejects what that rejects, and keeps what that keeps. The real one is in test/sdks. */
import { task } from '../../../test/support/logs/log-entries.ts'
import type { AgUiRun } from '../src/protocols/ag-ui/ag-ui-stream.ts'
import type { AgUiChunk } from '../src/protocols/ag-ui/sent-messages.ts'

/** The run of a client that has nothing, and that of a viewer. */
export const run: AgUiRun = {
  ...{ task, threadId: 't', runId: 'r', turnNumber: 1, known: new Set<string>(), answered: new Set<string>(), input: null, isBack: false },
  earlier: async () => [],
}
export const viewer: AgUiRun = { ...run, runId: null, turnNumber: null, known: null }

export type ReadMessage = {
  id: string
  role: string
  content?: unknown
  toolCalls?: ReadCall[]
  toolCallId?: string
  activityType?: string
} & Extra
type ReadCall = { id: string; type: 'function'; function: { name: string; arguments: string } } & Extra
type Extra = { metadata?: Record<string, unknown>; subagentRunId?: string }

/** In an order that does not depend on when the reader got them. Progress is not stored. */
export function comparable(messages: readonly ReadMessage[]): ReadMessage[] {
  return messages
    .filter(({ id, activityType }) => activityType !== 'tool-progress' && id !== `${task}:none`)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** The messages after the run. Throws where the client would. `isCut`: the connection broke, so the run may be unfinished. */
export function readRun(chunks: readonly AgUiChunk[], before: readonly ReadMessage[] = [], isCut = false): ReadMessage[] {
  let messages = structuredClone([...before])
  const open = new Set<string>()
  /** The owner of what is open, and whether each subagent is active or has ended. */
  const owners = new Map<string, unknown>()
  const subagents = new Map<unknown, 'active' | 'ended'>()
  let state: 'none' | 'running' | 'over' = 'none'
  for (const chunk of chunks) {
    const { type } = chunk
    if ((state === 'none') !== (type === 'RUN_STARTED')) throw new Error(`${type} while the run is ${state}`)
    if (state === 'over') throw new Error(`${type} after the end`)
    if (type === 'RUN_STARTED') state = 'running'
    else if (type === 'RUN_ERROR') state = 'over'
    else if (type === 'RUN_FINISHED') {
      if (open.size > 0) throw new Error(`The run ends while ${[...open].join()} is open`)
      if ([...subagents.values()].includes('active')) throw new Error('The run ends while a subagent is active')
      state = 'over'
    } else apply(chunk)
  }
  if (!isCut && state !== 'over') throw new Error('The run does not end')
  return messages

  function apply(chunk: AgUiChunk): void {
    const { type, delta } = chunk
    const [, kind = '', step = ''] = /^(TEXT_MESSAGE|REASONING_MESSAGE|REASONING|TOOL_CALL)_(START|CONTENT|ARGS|END)$/.exec(type) ?? []
    if (step !== '') follow(`${kind} ${String(chunk.messageId ?? chunk.toolCallId)}`, step, chunk.subagentRunId)
    if (type.startsWith('SUBAGENT_')) followSubagent(chunk)
    if (type === 'MESSAGES_SNAPSHOT') replaceAll(chunk)
    const id = String(chunk.messageId ?? '')
    if ((kind === 'TEXT_MESSAGE' || kind === 'REASONING_MESSAGE') && step === 'START' && !find(id))
      messages.push({ id, role: String(chunk.role), content: '', ...ownerOf(chunk) })
    if (step === 'CONTENT') {
      if (typeof delta !== 'string' || delta === '') throw new Error(`${type} without a delta`)
      const own = find(id)
      if (!own || own.role === 'activity') throw new Error(`${type} of no message`)
      own.content = `${String(own.content ?? '')}${delta}`
    }
    if (step === 'END' && find(id)) merge(find(id), { metadata: chunk.metadata })
    if (kind === 'TOOL_CALL') applyCall(chunk, step)
    if (type === 'TOOL_CALL_RESULT') insertResult(chunk)
    if (type === 'ACTIVITY_SNAPSHOT') applyActivity(chunk)
  }

  function followSubagent({ type, subagentRunId: id, parentSubagentRunId: parent }: AgUiChunk): void {
    const isStart = type === 'SUBAGENT_STARTED'
    if (subagents.get(id) !== (isStart ? undefined : 'active')) throw new Error(`${type} of ${String(id)}`)
    if (parent !== undefined && !subagents.has(parent)) throw new Error('A subagent of one that has not started')
    subagents.set(id, isStart ? 'active' : 'ended')
  }

  function ownerOf({ subagentRunId }: AgUiChunk): Extra {
    return subagentRunId === undefined ? {} : { subagentRunId: String(subagentRunId) }
  }

  function follow(name: string, step: string, owner: unknown): void {
    if (owners.has(name) && owners.get(name) !== owner) throw new Error(`${name} is of another agent`)
    owners.set(name, owner)
    if (step === 'START') {
      if (open.has(name)) throw new Error(`${name} is opened twice`)
      open.add(name)
    } else if (!open.has(name)) throw new Error(`${step} of ${name}, which is not open`)
    if (step === 'END') open.delete(name)
  }

  function applyCall(chunk: AgUiChunk, step: string): void {
    const { toolCallId, toolCallName, parentMessageId, delta, metadata } = chunk
    const known = messages.flatMap(({ toolCalls = [] }) => toolCalls).find(({ id }) => id === toolCallId)
    if (step === 'START' && !known) {
      const parent = find(String(parentMessageId))
      if (parent && parent.role !== 'assistant') throw new Error('A call belongs to a message of the assistant')
      const own = parent ?? { id: String(parentMessageId), role: 'assistant', ...ownerOf(chunk) }
      if (!parent) messages.push(own)
      own.toolCalls = [
        ...(own.toolCalls ?? []),
        { id: String(toolCallId), type: 'function', function: { name: String(toolCallName), arguments: '' } },
      ]
    }
    if (step === 'START' && known) known.function.name = String(toolCallName)
    if (step === 'ARGS' && known) known.function.arguments += String(delta)
    if (step === 'END' && known) merge(known, { metadata })
  }

  function insertResult(chunk: AgUiChunk): void {
    const { messageId, toolCallId, role, content, metadata } = chunk
    const own: ReadMessage = { id: String(messageId), role: String(role), toolCallId: String(toolCallId), content, ...ownerOf(chunk) }
    merge(own, { metadata })
    let place = messages.findIndex(({ toolCalls }) => toolCalls?.some(({ id }) => id === toolCallId))
    if (place < 0) throw new Error('A result of no call')
    for (place += 1; messages[place]?.role === 'tool'; ) place += 1
    messages.splice(place, 0, own)
  }

  function applyActivity(chunk: AgUiChunk): void {
    const { messageId, activityType, content, metadata } = chunk
    const own = find(String(messageId)) ?? { id: String(messageId), role: 'activity', ...ownerOf(chunk) }
    if (own.role !== 'activity') throw new Error('Not an activity')
    if (!messages.includes(own)) messages.push(own)
    Object.assign(own, { activityType, content })
    merge(own, { metadata })
  }

  function replaceAll(chunk: AgUiChunk): void {
    if (open.size > 0) throw new Error('A snapshot while something is open')
    const given = structuredClone(chunk.messages as ReadMessage[])
    const { '@ag-ui/client': scope } = chunk.metadata as { '@ag-ui/client': { authoritativeActivityTypes: string[] } }
    const hasReasoning = given.some(({ role }) => role === 'reasoning')
    const isKept = ({ role, activityType = '' }: ReadMessage) =>
      (role === 'activity' && !scope.authoritativeActivityTypes.includes(activityType)) || (role === 'reasoning' && !hasReasoning)
    const byId = new Map(given.map(message => [message.id, message]))
    const kept = messages.filter(message => byId.has(message.id) || isKept(message)).map(message => byId.get(message.id) ?? message)
    messages = [...kept, ...given.filter(({ id }) => !kept.some(message => message.id === id))]
  }

  function find(id: string): ReadMessage | undefined {
    return messages.find(message => message.id === id)
  }

  function merge(target: Extra | undefined, { metadata }: { metadata?: unknown }): void {
    if (target && metadata) target.metadata = { ...target.metadata, ...(metadata as object) }
  }
}
