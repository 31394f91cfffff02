/** What AG-UI's client 1.0 does with the events of a run, in short: it rejects what that rejects, and keeps what that keeps. The real one is in test/sdks. */
import type { AgUiChunk } from '../src/stream/dialects/ag-ui/message-teller.ts'

export type ReadMessage = {
  id: string
  role: string
  content?: unknown
  toolCalls?: ReadCall[]
  toolCallId?: string
  activityType?: string
} & Extra
type ReadCall = { id: string; type: 'function'; function: { name: string; arguments: string } } & Extra
type Extra = { metadata?: Record<string, unknown> }

/** The messages after the run. Throws where the client would. `isCut`: the connection broke, so the run may be unfinished. */
export function readRun(chunks: readonly AgUiChunk[], before: readonly ReadMessage[] = [], isCut = false): ReadMessage[] {
  let messages = structuredClone([...before])
  const open = new Set<string>()
  let state: 'none' | 'running' | 'over' = 'none'
  for (const chunk of chunks) {
    const { type } = chunk
    if ((state === 'none') !== (type === 'RUN_STARTED')) throw new Error(`${type} while the run is ${state}`)
    if (state === 'over') throw new Error(`${type} after the end`)
    if (type === 'RUN_STARTED') state = 'running'
    else if (type === 'RUN_ERROR') state = 'over'
    else if (type === 'RUN_FINISHED') {
      if (open.size > 0) throw new Error(`The run ends while ${[...open].join()} is open`)
      state = 'over'
    } else apply(chunk)
  }
  if (!isCut && state !== 'over') throw new Error('The run does not end')
  return messages

  function apply(chunk: AgUiChunk): void {
    const { type, delta } = chunk
    const [, kind = '', step = ''] = /^(TEXT_MESSAGE|REASONING_MESSAGE|REASONING|TOOL_CALL)_(START|CONTENT|ARGS|END)$/.exec(type) ?? []
    if (step !== '') follow(`${kind} ${String(chunk.messageId ?? chunk.toolCallId)}`, step)
    if (type === 'MESSAGES_SNAPSHOT') replaceAll(chunk)
    const id = String(chunk.messageId ?? '')
    if ((kind === 'TEXT_MESSAGE' || kind === 'REASONING_MESSAGE') && step === 'START' && !find(id))
      messages.push({ id, role: String(chunk.role), content: '' })
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

  function follow(name: string, step: string): void {
    if (step === 'START') {
      if (open.has(name)) throw new Error(`${name} is opened twice`)
      open.add(name)
    } else if (!open.has(name)) throw new Error(`${step} of ${name}, which is not open`)
    if (step === 'END') open.delete(name)
  }

  function applyCall({ toolCallId, toolCallName, parentMessageId, delta, metadata }: AgUiChunk, step: string): void {
    const known = messages.flatMap(({ toolCalls = [] }) => toolCalls).find(({ id }) => id === toolCallId)
    if (step === 'START' && !known) {
      const parent = find(String(parentMessageId))
      if (parent && parent.role !== 'assistant') throw new Error('A call belongs to a message of the assistant')
      const own = parent ?? { id: String(parentMessageId), role: 'assistant' }
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

  function insertResult({ messageId, toolCallId, role, content, metadata }: AgUiChunk): void {
    const own: ReadMessage = { id: String(messageId), role: String(role), toolCallId: String(toolCallId), content }
    merge(own, { metadata })
    let place = messages.findIndex(({ toolCalls }) => toolCalls?.some(({ id }) => id === toolCallId))
    if (place < 0) throw new Error('A result of no call')
    for (place += 1; messages[place]?.role === 'tool'; ) place += 1
    messages.splice(place, 0, own)
  }

  function applyActivity({ messageId, activityType, content, metadata }: AgUiChunk): void {
    const own = find(String(messageId)) ?? { id: String(messageId), role: 'activity' }
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
