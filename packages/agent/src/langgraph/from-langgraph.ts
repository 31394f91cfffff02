/**
 * `turn.autoSend(fromLangGraph(await graph.stream(input, { streamMode: ['messages', 'custom'] })))`: a run of a graph as updates.
 *
 * Each message of a model is a text, its reasoning and its calls, in order of appearance; each message of a tool is a response, with `isError` by its
 * status. What a node writes (`config.writer`) is a custom event. Nodes side by side may emit messages at the same time. Not every model tells in its chunks
 * that its message is over, so a message ends with its stop reason, its usage behind its content, the result of one of its calls, or the stream.
 */
import {
  type Content,
  custom,
  reasoning,
  type StopReason,
  sumUsage,
  text,
  toolRequest,
  toolResponse,
  type Update,
  type Usage,
} from '@rivulet/protocol'
import { type Block, createBlocks } from '../foreign/blocks.ts'
import { jsonOf, type PartReader, updatesOf } from '../foreign/foreign-run.ts'
import { mergeUsage } from '../model/usage.ts'

/** A part of the stream: `[message, metadata]`, or `[mode, part]` where the graph streams several modes. */
export type LangGraphPart = readonly unknown[]

type Fields = Record<string, unknown>
type OpenMessage = {
  blocks: Block[]
  text: Block | null
  thought: Block | null
  calls: Map<number, Block>
  callIds: Set<string>
  stop: string
  usage: Usage | undefined
}

export function fromLangGraph(parts: AsyncIterable<LangGraphPart>): AsyncGenerator<Update, void, void> {
  return updatesOf(parts, createPartReader)
}

function createPartReader(emit: (update: Update) => void): PartReader<LangGraphPart> {
  const blocks = createBlocks(emit)
  const open = new Map<string, OpenMessage>()
  return { read, end: endAll, settle: blocks.settle }

  function read([first, second]: LangGraphPart): boolean {
    if (first === 'custom') emit(custom('langgraph', jsonOf(second)))
    else if (first === 'messages') readMessage(fieldsOf(Array.isArray(second) ? second[0] : second))
    else if (typeof first !== 'string') readMessage(fieldsOf(first))
    return false
  }

  function readMessage(message: Fields): void {
    const kind = kindOf(message)
    // One that has stopped waits only for its usage, which no other message comes before.
    for (const [id, entry] of open) if (entry.stop && id !== message.id) end(id, entry)
    if (kind === 'tool') readResponse(message)
    else if (kind === 'ai') readChunk(message)
  }

  function readResponse({ tool_call_id, name, content, status }: Fields): void {
    const callId = textOf(tool_call_id)
    for (const [id, entry] of open) if (entry.callIds.has(callId)) end(id, entry)
    blocks.close(blocks.open(toolResponse(callId, textOf(name), jsonOf(content), status === 'error')))
  }

  function readChunk(message: Fields): void {
    const id = textOf(message.id)
    const entry = open.get(id) ?? newMessage()
    open.set(id, entry)
    const isBehindContent = entry.blocks.length > 0
    for (const part of [message.content].flat()) readContent(entry, part)
    for (const chunk of arrayOf(message.tool_call_chunks)) readCall(entry, fieldsOf(chunk))
    const { finish_reason, stop_reason } = { ...fieldsOf(message.additional_kwargs), ...fieldsOf(message.response_metadata) }
    entry.stop ||= textOf(finish_reason) || textOf(stop_reason)
    const usage = usageOf(fieldsOf(message.usage_metadata))
    // Some models send a part of it first, before any content: the parts are added up.
    entry.usage = sumUsage([entry.usage, usage])
    if (entry.usage && (entry.stop || (usage && isBehindContent))) end(id, entry)
  }

  function readContent(entry: OpenMessage, part: unknown): void {
    const { type, text: words, thinking, reasoning: thought } = fieldsOf(part)
    const said = typeof part === 'string' ? part : type === 'text' ? textOf(words) : ''
    const thinks = textOf(thinking) || textOf(thought)
    if (thinks) {
      entry.thought ??= opened(entry, reasoning())
      blocks.append(entry.thought, { type: 'reasoning_content', index: 0, text: thinks })
    }
    if (!said) return
    if (entry.thought) blocks.close(entry.thought)
    entry.text ??= opened(entry, text())
    blocks.append(entry.text, { type: 'text', text: said })
  }

  /** Only the first chunk of a call has its id and name; the others have its index. */
  function readCall(entry: OpenMessage, { index, id, name, args }: Fields): void {
    const place = typeof index === 'number' ? index : entry.calls.size
    const block = entry.calls.get(place) ?? opened(entry, toolRequest(textOf(id), textOf(name)))
    entry.calls.set(place, block)
    if (textOf(id)) entry.callIds.add(textOf(id))
    if (textOf(args)) blocks.append(block, { type: 'tool_request', text: textOf(args) })
  }

  function opened(entry: OpenMessage, content: Content): Block {
    const block = blocks.open(content)
    entry.blocks.push(block)
    return block
  }

  function end(id: string, entry: OpenMessage): void {
    open.delete(id)
    const stopReason = entry.calls.size > 0 ? 'tool_use' : stopReasonOf(entry.stop)
    blocks.closeGroup(entry.blocks, { stopReason, ...(entry.usage && { usage: entry.usage }) })
  }

  function endAll(): void {
    for (const [id, entry] of open) end(id, entry)
    blocks.closeAll({})
  }
}

function newMessage(): OpenMessage {
  return { blocks: [], text: null, thought: null, calls: new Map(), callIds: new Set(), stop: '', usage: undefined }
}

function usageOf({ input_tokens, output_tokens, total_tokens }: Fields): Usage | undefined {
  return mergeUsage(undefined, { inputTokens: input_tokens, outputTokens: output_tokens, totalTokens: total_tokens })
}

function kindOf(message: Fields): string {
  for (const method of ['getType', '_getType']) {
    const get = message[method]
    if (typeof get === 'function') return String(get.call(message))
  }
  return textOf(message.type).replace(/^AIMessageChunk$/, 'ai')
}

function stopReasonOf(reason: string): StopReason {
  if (reason === 'length' || reason === 'max_tokens') return 'length'
  if (reason === 'content_filter' || reason === 'refusal') return 'content_filter'
  return reason === 'tool_calls' || reason === 'tool_use' ? 'tool_use' : 'stop'
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function arrayOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
