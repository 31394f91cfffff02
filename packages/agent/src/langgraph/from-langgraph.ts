/**
 * `turn.autoSend(fromLangGraph(await graph.stream(input, { streamMode: ['messages', 'custom'] })))`: a run of a graph as updates.
 *
 * Each message of a model is a text, its reasoning and its calls, in order of appearance; each message of a tool is a response, with `isError` by its
 * status. What a node writes (`config.writer`) is a custom event. A message that another node emits while one is open has messages of its own.
 */
import { custom, reasoning, type StopReason, text, toolRequest, toolResponse, type Update } from '@rivulet/protocol'
import { type Block, createBlocks } from '../foreign/blocks.ts'
import { jsonOf, type PartReader, updatesOf } from '../foreign/foreign-run.ts'
import { mergeUsage } from '../model/usage.ts'

/** A part of the stream: `[message, metadata]`, or `[mode, part]` where the graph streams several modes. */
export type LangGraphPart = readonly unknown[]

type Fields = Record<string, unknown>
type OpenMessage = { text: Block | null; thought: Block | null; calls: Map<number, Block>; isOver: boolean }

export function fromLangGraph(parts: AsyncIterable<LangGraphPart>): AsyncGenerator<Update, void, void> {
  return updatesOf(parts, createPartReader)
}

function createPartReader(emit: (update: Update) => void): PartReader<LangGraphPart> {
  const blocks = createBlocks(emit)
  const open = new Map<string, OpenMessage>()
  return { read, end: () => blocks.closeAll({}), settle: blocks.settle }

  function read([first, second]: LangGraphPart): boolean {
    if (first === 'custom') emit(custom('langgraph', jsonOf(second)))
    else if (first === 'messages') readMessage(fieldsOf(Array.isArray(second) ? second[0] : second))
    else if (typeof first !== 'string') readMessage(fieldsOf(first))
    return false
  }

  function readMessage(message: Fields): void {
    const kind = kindOf(message)
    if (kind === 'tool') readResponse(message)
    else if (kind === 'ai') readChunk(message)
  }

  function readResponse({ tool_call_id, name, content, status }: Fields): void {
    blocks.close(blocks.open(toolResponse(textOf(tool_call_id), textOf(name), jsonOf(content), status === 'error')))
  }

  function readChunk(message: Fields): void {
    const known = open.get(textOf(message.id))
    const entry: OpenMessage = known && !known.isOver ? known : { text: null, thought: null, calls: new Map(), isOver: false }
    open.set(textOf(message.id), entry)
    for (const part of [message.content].flat()) readContent(entry, part)
    for (const chunk of arrayOf(message.tool_call_chunks)) readCall(entry, fieldsOf(chunk))
    const { finish_reason, stop_reason } = fieldsOf(message.response_metadata)
    const stop = textOf(finish_reason) || textOf(stop_reason)
    if (stop) end(entry, stop, fieldsOf(message.usage_metadata))
  }

  function readContent(entry: OpenMessage, part: unknown): void {
    const { type, text: words, thinking, reasoning: thought } = fieldsOf(part)
    const said = typeof part === 'string' ? part : type === 'text' ? textOf(words) : ''
    const thinks = textOf(thinking) || textOf(thought)
    if (thinks) {
      entry.thought ??= blocks.open(reasoning())
      blocks.append(entry.thought, { type: 'reasoning_content', index: 0, text: thinks })
    }
    if (!said) return
    if (entry.thought) blocks.close(entry.thought)
    entry.text ??= blocks.open(text())
    blocks.append(entry.text, { type: 'text', text: said })
  }

  /** Only the first chunk of a call has its id and name; the others have its index. */
  function readCall(entry: OpenMessage, { index, id, name, args }: Fields): void {
    const place = typeof index === 'number' ? index : entry.calls.size
    const block = entry.calls.get(place) ?? blocks.open(toolRequest(textOf(id), textOf(name)))
    entry.calls.set(place, block)
    if (textOf(args)) blocks.append(block, { type: 'tool_request', text: textOf(args) })
  }

  function end(entry: OpenMessage, stop: string, usage: Fields): void {
    const counted = mergeUsage(undefined, {
      inputTokens: usage.input_tokens,
      outputTokens: usage.output_tokens,
      totalTokens: usage.total_tokens,
    })
    const stopReason = entry.calls.size > 0 ? 'tool_use' : stopReasonOf(stop)
    entry.isOver = true
    blocks.closeAll({}, { stopReason, ...(counted && { usage: counted }) })
  }
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
