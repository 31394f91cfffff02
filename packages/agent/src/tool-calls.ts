/**
 * Puts tool calls together from fragments, as OpenAI's dialect sends them: in pieces, interleaved, not always with an id or an index.
 *
 * A call is said once its name is known to be whole, which is when its arguments begin or something else follows; one that never gets a name
 * is not said at all. Arguments are never judged before the response ends: a text that parses may be the beginning of a longer one.
 */
import { type JsonObject, toolRequest } from '@rivulet/protocol'
import { AgentError } from './agent-error.ts'
import type { ModelLimits } from './limits.ts'
import type { ResponseWriter } from './response-writer.ts'

export type CallFragment = {
  index?: number | undefined
  id?: string | undefined
  name?: string | undefined
  arguments?: string | undefined
}

export type ToolCalls = {
  add(fragment: CallFragment): void
  /** Attaches provider metadata to the call with this id, also before it is said. */
  annotate(id: string, metadata: JsonObject): void
  /** Says the calls that have a name, in order: something else is about to be said. */
  sayNamed(): void
  /** Says what was held back. */
  flush(): void
}

type Call = {
  id: string
  index: number | undefined
  name: string
  /** Its place among the blocks, once it is said. */
  block: number | null
  /** Arguments that are not said yet. */
  held: string
  /** Whether all that was heard so far may turn out to be an empty object in front of the real one. */
  isUndecided: boolean
}

export function createToolCalls(writer: ResponseWriter, limits: Pick<ModelLimits, 'calls' | 'argumentChars'>): ToolCalls {
  const calls: Call[] = []
  const metadata = new Map<string, JsonObject>()
  let chars = 0
  return { add, annotate, sayNamed, flush }

  function add(fragment: CallFragment): void {
    const call = findCall(fragment) ?? begin(fragment)
    if (call.block === null) {
      call.id ||= fragment.id ?? ''
      // Some send the whole name with every fragment, some send it in pieces.
      if (fragment.name && fragment.name !== call.name) {
        count(fragment.name)
        call.name += fragment.name
      }
    }
    if (!fragment.arguments) return
    count(fragment.arguments)
    call.held += fragment.arguments
    if (call.name === '') return
    sayNamed()
    sayArguments(call)
  }

  function count(piece: string): void {
    chars += piece.length
    if (chars > limits.argumentChars) throw new AgentError(`The model sent tool arguments of more than ${limits.argumentChars} characters`)
  }

  /** By id, else by index, else the latest. A new id that brings no name is a careless continuation, not a call. */
  function findCall({ id, index, name }: CallFragment): Call | undefined {
    const atIndex = index === undefined ? undefined : calls.findLast(call => call.index === index)
    if (id) return calls.find(call => call.id === id) ?? (name && atIndex?.id ? undefined : atIndex)
    // Some number every call 0, and give no ids.
    if (index !== undefined) return atIndex?.block !== null && name && name !== atIndex?.name ? undefined : atIndex
    return name && calls.at(-1)?.block !== null ? undefined : calls.at(-1)
  }

  function begin({ index }: CallFragment): Call {
    if (calls.length >= limits.calls) throw new AgentError(`The model made more than ${limits.calls} tool calls at once`)
    const call: Call = { id: '', index, name: '', block: null, held: '', isUndecided: true }
    calls.push(call)
    return call
  }

  function sayNamed(): void {
    for (const call of calls) {
      if (call.block !== null || call.name === '') continue
      call.id ||= newCallId()
      call.block = writer.open(toolRequest(call.id, call.name), metadata.get(call.id))
      sayArguments(call)
    }
  }

  function sayArguments(call: Call): void {
    if (call.block === null || call.held === '') return
    if (call.isUndecided && call.held.length < 64 && /^\s*(\{\s*(\}\s*)?)?$/.test(call.held)) return
    // Bedrock puts an empty object in front of the arguments.
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
    sayNamed()
    for (const { block, held } of calls) if (block !== null && held !== '') writer.append(block, { type: 'tool_request', text: held })
    for (const call of calls) call.held = ''
  }
}

/** Unlike any other call's of the conversation. */
export function newCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return `call_${Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')}`
}
