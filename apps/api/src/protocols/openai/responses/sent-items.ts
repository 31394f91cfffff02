/**
 * The output items that a client has, and the chunks that bring each up to date.
 *
 * OpenAI's SDK rejects an item that is opened twice, a part that is not the next one, and an item that is still open at the end but not in
 * the final output. So each item gets the next free output index once, grows only at its end, and is closed once. Content that is no
 * longer true is closed as it is; the item's last chunk and the final output have the right one.
 */
import type { Content, Delta, Message } from '@rivulet/protocol'
import {
  type CallItem,
  type Item,
  type ItemSource,
  isClosed,
  itemOf,
  type QuestionItem,
  type ReasoningItem,
  type TextItem,
} from './output-item.ts'

export type ItemChunk = { type: string; output_index: number; item_id?: string } & Record<string, unknown>

/** Lengths of the texts that the client has: of the text, of the arguments, or of each part of a reasoning. */
type Sent = {
  item: Item
  outputIndex: number
  length: number
  summary: number[]
  content: number[]
  state: 'open' | 'called' | 'done'
}

export class SentItems {
  readonly #byId = new Map<string, Sent>()
  /** The item of each message. */
  readonly #byIndex = new Map<number, Sent>()
  /** Texts of an earlier attempt, which the client has. */
  readonly #skipped = new Map<number, string>()

  isEmpty(): boolean {
    return this.#byId.size === 0
  }

  /** All that the client lacks of an item. `isOver`: the turn has ended, so the item is closed whatever it lacks. */
  update(source: ItemSource, isOver = false): ItemChunk[] {
    const isEnding = isOver || isClosed(source)
    if (!isEnding && isSentWhole[source.message.content.type]) return []
    const item = itemOf(source, isOver)
    const { index } = source.message
    const before = this.#byIndex.get(index)
    // Replaced by content of another type: for the client that is another item.
    const dropped = before && before.item.id !== item.id ? cut(before) : []
    const known = this.#byId.get(item.id)
    const own = known ?? this.#open(item, index)
    this.#byIndex.set(index, own)
    if (own.state === 'done') return dropped
    const opening = known ? [] : [chunkOf(own, 'response.output_item.added', { item: emptyOf(item) }, false)]
    return [...dropped, ...opening, ...growthOf(own, item, source), ...(isEnding ? closingOf(own, item) : [])]
  }

  /** The short way for nearly all changes: a delta that begins where the client's text ends. Null where `update` has to look. */
  grow({ index, content }: Message, delta: Delta): ItemChunk[] | null {
    const own = this.#byIndex.get(index)
    if (own?.state !== 'open') return null
    if (delta.type === 'text' && content.type === 'text' && own.length === content.text.length) {
      own.length += delta.text.length
      return [textDelta(own, delta.text)]
    }
    if (delta.type === 'tool_request' && content.type === 'tool_request' && own.length === (content.raw ?? '').length) {
      own.length += delta.text.length
      return [argumentsDelta(own, delta.text)]
    }
    if ((delta.type !== 'reasoning_summary' && delta.type !== 'reasoning_content') || content.type !== 'reasoning') return null
    const kind = delta.type === 'reasoning_summary' ? 'summary' : 'content'
    const length = content[kind][delta.index]?.length ?? 0
    if (own[kind][delta.index] !== length) return null
    own[kind][delta.index] = length + delta.text.length
    return [reasoningDelta(own, kind, delta.index, delta.text)]
  }

  /** The text of the item was replaced: its last chunk has the new one, because deltas can only append to the old one. */
  freeze(index: number): void {
    const own = this.#byIndex.get(index)
    if (own) own.length = Number.POSITIVE_INFINITY
  }

  /** The deltas of the next item of this message begin behind the text, if the client has it and the item begins with it. */
  skip(index: number, text: string): void {
    if (this.#byIndex.get(index)?.length === text.length) this.#skipped.set(index, text)
  }

  /** Closes, as incomplete, the open items that are not in the final output. */
  abandon(kept: ReadonlySet<string> = new Set()): ItemChunk[] {
    this.#byIndex.clear()
    return Array.from(this.#byId.values()).flatMap(own => (kept.has(own.item.id) ? [] : cut(own)))
  }

  /** The questions that end a response, behind all other items. They come whole. */
  ask(questions: readonly QuestionItem[]): ItemChunk[] {
    return questions.flatMap((item, place) => {
      const own = { item, outputIndex: this.#byId.size + place }
      const done = chunkOf(own, 'response.output_item.done', { item }, false)
      if (item.type === 'mcp_approval_request') return [chunkOf(own, 'response.output_item.added', { item }, false), done]
      const { arguments: given, name } = item
      return [
        chunkOf(own, 'response.output_item.added', { item: { ...item, arguments: '', status: 'in_progress' } }, false),
        chunkOf(own, 'response.function_call_arguments.delta', { delta: given }),
        chunkOf(own, 'response.function_call_arguments.done', { name, arguments: given }),
        done,
      ]
    })
  }

  #open(item: Item, index: number): Sent {
    const earlier = this.#skipped.get(index) ?? ''
    const length = item.type === 'message' && textIn(item).startsWith(earlier) ? earlier.length : 0
    const own: Sent = { item, outputIndex: this.#byId.size, length, summary: [], content: [], state: 'open' }
    this.#byId.set(item.id, own)
    return own
  }
}

/** Items of these contents are sent whole at their end, because their text does not only grow, or they are a response without a call. */
const isSentWhole: Record<Content['type'], boolean> = {
  text: false,
  reasoning: false,
  tool_request: false,
  tool_response: true,
  data: true,
  media: true,
}

function cut(own: Sent): ItemChunk[] {
  if (own.state === 'done') return []
  own.state = 'done'
  return [chunkOf(own, 'response.output_item.done', { item: { ...own.item, status: 'incomplete' } }, false)]
}

function growthOf(own: Sent, item: Item, source: ItemSource): ItemChunk[] {
  switch (item.type) {
    case 'message':
      return [...openPart(own, item), ...grown(own, textIn(item), text => textDelta(own, text))]
    case 'reasoning':
      return [...grownParts(own, item, 'summary'), ...grownParts(own, item, 'content')]
    case 'mcp_call': {
      if (own.state !== 'open') return []
      const added = grown(own, item.arguments, text => argumentsDelta(own, text))
      return source.message.status === 'streaming' ? added : [...added, ...called(own, item)]
    }
    case 'image_generation_call':
      return []
    default:
      return item satisfies never
  }
}

function closingOf(own: Sent, item: Item): ItemChunk[] {
  const ends = endsOf(own, item)
  own.state = 'done'
  own.item = item
  return [...ends, chunkOf(own, 'response.output_item.done', { item }, false)]
}

function endsOf(own: Sent, item: Item): ItemChunk[] {
  switch (item.type) {
    case 'message': {
      const [part] = item.content
      // Beyond that, the annotations are in the item's last chunk alone.
      const annotations = part?.annotations.slice(0, mostAnnotations) ?? []
      return [
        ...annotations.map((annotation, annotation_index) =>
          chunkOf(own, 'response.output_text.annotation.added', { content_index: 0, annotation_index, annotation }),
        ),
        chunkOf(own, 'response.output_text.done', { content_index: 0, text: textIn(item), logprobs: [] }),
        chunkOf(own, 'response.content_part.done', { content_index: 0, part }),
      ]
    }
    case 'reasoning':
      return [
        ...item.summary.flatMap((part, summary_index) => [
          chunkOf(own, 'response.reasoning_summary_text.done', { summary_index, text: part.text }),
          chunkOf(own, 'response.reasoning_summary_part.done', { summary_index, part }),
        ]),
        ...item.content.flatMap((part, content_index) => [
          chunkOf(own, 'response.reasoning_text.done', { content_index, text: part.text }),
          chunkOf(own, 'response.content_part.done', { content_index, part }),
        ]),
      ]
    case 'mcp_call': {
      const args = own.state === 'open' ? called(own, item) : []
      if (item.status === 'incomplete') return args
      return [...args, chunkOf(own, item.status === 'failed' ? 'response.mcp_call.failed' : 'response.mcp_call.completed', {})]
    }
    case 'image_generation_call':
      return [chunkOf(own, 'response.image_generation_call.completed', {})]
    default:
      return item satisfies never
  }
}

const mostAnnotations = 100

function openPart(own: Sent, item: TextItem): ItemChunk[] {
  if (own.content.length > 0) return []
  own.content.push(0)
  return [chunkOf(own, 'response.content_part.added', { content_index: 0, part: { ...item.content[0], text: '', annotations: [] } })]
}

/** The parts that the client lacks, in order, and what the others have grown by. */
function grownParts(own: Sent, item: ReasoningItem, kind: 'summary' | 'content'): ItemChunk[] {
  return item[kind].flatMap((part, index) => {
    const known = own[kind][index]
    const length = known ?? 0
    own[kind][index] = Math.max(length, part.text.length)
    const added = { ...part, text: '' }
    const opening =
      kind === 'summary'
        ? chunkOf(own, 'response.reasoning_summary_part.added', { summary_index: index, part: added })
        : chunkOf(own, 'response.content_part.added', { content_index: index, part: added })
    const more = part.text.slice(length)
    return [...(known === undefined ? [opening] : []), ...(more === '' ? [] : [reasoningDelta(own, kind, index, more)])]
  })
}

function grown(own: Sent, text: string, toChunk: (text: string) => ItemChunk): ItemChunk[] {
  const more = text.slice(own.length)
  own.length += more.length
  return more === '' ? [] : [toChunk(more)]
}

function called(own: Sent, item: CallItem): ItemChunk[] {
  own.state = 'called'
  return [
    chunkOf(own, 'response.mcp_call_arguments.done', { arguments: item.arguments }),
    chunkOf(own, 'response.mcp_call.in_progress', {}),
  ]
}

function textDelta(own: Sent, delta: string): ItemChunk {
  return chunkOf(own, 'response.output_text.delta', { content_index: 0, delta, logprobs: [] })
}

function argumentsDelta(own: Sent, delta: string): ItemChunk {
  return chunkOf(own, 'response.mcp_call_arguments.delta', { delta })
}

function reasoningDelta(own: Sent, kind: 'summary' | 'content', index: number, delta: string): ItemChunk {
  return kind === 'summary'
    ? chunkOf(own, 'response.reasoning_summary_text.delta', { summary_index: index, delta })
    : chunkOf(own, 'response.reasoning_text.delta', { content_index: index, delta })
}

function chunkOf(
  { item, outputIndex }: { item: { id: string }; outputIndex: number },
  type: string,
  fields: object,
  hasId = true,
): ItemChunk {
  return { type, output_index: outputIndex, ...(hasId && { item_id: item.id }), ...fields }
}

function textIn({ content: [part] }: TextItem): string {
  return part?.text ?? ''
}

/** The item before its first part. */
function emptyOf(item: Item): Item {
  switch (item.type) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] }
    case 'reasoning':
      return { ...item, status: 'in_progress', summary: [], content: [] }
    case 'mcp_call':
      return { ...item, status: 'in_progress', arguments: '', output: null, error: null }
    case 'image_generation_call':
      return { ...item, status: 'in_progress', result: null }
    default:
      return item satisfies never
  }
}
