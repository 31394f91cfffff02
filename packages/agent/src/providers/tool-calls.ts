/**
 * Assembles tool calls from the fragments of chat completions, which may be interleaved and may lack an id or an index.
 *
 * A call is emitted once its name is complete: when its arguments begin, or when other content follows. A call that never gets a name is not
 * emitted. Arguments are not parsed before the response ends, because text that parses may be the beginning of a longer value.
 */
import { type JsonObject, toolRequest } from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import type { ModelLimits } from '../model/limits.ts'
import type { ResponseWriter } from '../model/response-writer.ts'

export type CallFragment = {
  index?: number | undefined
  id?: string | undefined
  name?: string | undefined
  arguments?: string | undefined
}

type ToolCalls = {
  add(fragment: CallFragment): void
  /** Attaches provider metadata to the call with this id, even before the call is emitted. */
  annotate(id: string, metadata: JsonObject): void
  /** Emits the calls that have a name, in order. Called before other content is written. */
  openNamed(): void
  /** Emits everything that was held back. */
  flush(): void
}

type Call = {
  id: string
  index: number | undefined
  name: string
  /** Its index in the writer, once it is emitted. */
  block: number | null
  /** Arguments that are not emitted yet. */
  held: string
  /** Whether the arguments so far may be an empty object in front of the real one. */
  isUndecided: boolean
}

export function createToolCalls(writer: ResponseWriter, limits: Pick<ModelLimits, 'calls' | 'argumentChars'>): ToolCalls {
  const calls: Call[] = []
  const metadata = new Map<string, JsonObject>()
  let chars = 0
  return { add, annotate, openNamed, flush }

  function add(fragment: CallFragment): void {
    const call = findCall(fragment) ?? begin(fragment)
    if (call.block === null) {
      call.id ||= fragment.id ?? ''
      // Some providers send the whole name with every fragment, some send it in pieces.
      if (fragment.name && fragment.name !== call.name) {
        count(fragment.name)
        call.name += fragment.name
      }
    }
    if (!fragment.arguments) return
    count(fragment.arguments)
    call.held += fragment.arguments
    if (call.name === '') return
    openNamed()
    appendArguments(call)
  }

  function count(piece: string): void {
    chars += piece.length
    if (chars > limits.argumentChars)
      throw new AgentError(`The model sent more than ${limits.argumentChars} characters of tool arguments (limits.argumentChars)`)
  }

  /** Finds the call by id, else by index, else the latest. A new id without a name continues the call at its index; it is not a new call. */
  function findCall({ id, index, name }: CallFragment): Call | undefined {
    const atIndex = index === undefined ? undefined : calls.findLast(call => call.index === index)
    if (id) return calls.find(call => call.id === id) ?? (name && atIndex?.id ? undefined : atIndex)
    // Some providers give every call the index 0 and no id.
    if (index !== undefined) return atIndex?.block !== null && name && name !== atIndex?.name ? undefined : atIndex
    return name && calls.at(-1)?.block !== null ? undefined : calls.at(-1)
  }

  function begin({ index }: CallFragment): Call {
    if (calls.length >= limits.calls)
      throw new AgentError(`The model made more than ${limits.calls} tool calls in one response (limits.calls)`)
    const call: Call = { id: '', index, name: '', block: null, held: '', isUndecided: true }
    calls.push(call)
    return call
  }

  function openNamed(): void {
    for (const call of calls) {
      if (call.block !== null || call.name === '') continue
      call.id ||= newCallId()
      call.block = writer.open(toolRequest(call.id, call.name), metadata.get(call.id))
      appendArguments(call)
    }
  }

  function appendArguments(call: Call): void {
    if (call.block === null || call.held === '') return
    if (call.isUndecided && call.held.length < 64 && /^\s*(\{\s*(\}\s*)?)?$/.test(call.held)) return
    // Bedrock sends an empty object in front of the arguments.
    const text = call.isUndecided ? call.held.replace(/^\s*\{\s*\}\s*(?=\{)/, '') : call.held
    call.isUndecided = false
    call.held = ''
    writer.append(call.block, { type: 'tool_request', text })
  }

  function annotate(id: string, fields: JsonObject): void {
    metadata.set(id, { ...metadata.get(id), ...fields })
    const block = calls.find(call => call.id === id)?.block
    if (typeof block === 'number') writer.annotate(block, fields)
  }

  function flush(): void {
    openNamed()
    for (const { block, held } of calls) if (block !== null && held !== '') writer.append(block, { type: 'tool_request', text: held })
    for (const call of calls) call.held = ''
  }
}

/** A random id that is unique in the conversation. */
export function newCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return `call_${Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')}`
}
