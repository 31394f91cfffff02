/** What `responses.stream()` of OpenAI's SDK 7.53 does with a stream, in short: it rejects what that rejects. The real one is in test/sdks. */
import type { ResponseChunk } from '../src/protocols/openai/responses/response-stream.ts'

type Item = { id: string; type: string; summary?: unknown[]; content?: unknown[] }

const itemTypes: [RegExp, string][] = [
  [/^response\.output_text\./, 'message'],
  [/^response\.reasoning_/, 'reasoning'],
  [/^response\.mcp_call/, 'mcp_call'],
  [/^response\.image_generation_call\./, 'image_generation_call'],
]

/** The final response. Throws where the SDK would. */
export function readResponse(chunks: readonly ResponseChunk[]): unknown {
  const items = new Map<number, Item>()
  const closed = new Set<number>()
  let id: unknown
  let final: unknown
  for (const [place, chunk] of chunks.entries()) {
    const { type } = chunk
    if (final !== undefined) throw new Error(`${type} comes after the end`)
    if ((place === 0) !== (type === 'response.created')) throw new Error(`${type} is at ${place}`)
    if (isRecord(chunk.response)) {
      if (id !== undefined && chunk.response.id !== id) throw new Error('The identity of the response changed')
      id = chunk.response.id
      if (/\.(created|queued|in_progress)$/.test(type)) continue
      const output = chunk.response.output as Item[]
      if (type === 'response.completed') checkComplete(output)
      else if (type === 'response.failed' || type === 'response.incomplete') checkPositions(output)
      else throw new Error(`Unhandled event ${type}`)
      final = chunk.response
    } else follow(chunk)
  }
  return final

  function follow(chunk: ResponseChunk): void {
    const { type, item, item_id: itemId } = chunk
    const at = Number(chunk.output_index)
    const known = items.get(at)
    if (type === 'response.output_item.added') {
      const added = structuredClone(item) as Item
      if (known) throw new Error(`Duplicate output index ${at}`)
      if ([...items.values()].some(other => other.id === added.id) || !added.id) throw new Error(`Duplicate item ${added.id}`)
      items.set(at, added)
      return
    }
    if (!known || closed.has(at)) throw new Error(`${type} of an item that is not open: ${at}`)
    if (type === 'response.output_item.done') {
      checkSame(known, item as Item)
      closed.add(at)
      return
    }
    if (itemId !== known.id) throw new Error(`${type} has the item ${String(itemId)} instead of ${known.id}`)
    const expected = itemTypes.find(([pattern]) => pattern.test(type))?.[1] ?? (isReasoningPart(chunk) ? 'reasoning' : 'message')
    if (known.type !== expected) throw new Error(`${type} of a ${known.type}`)
    followPart(known, chunk)
  }

  function followPart(known: Item, { type, content_index: contentIndex, summary_index: summaryIndex }: ResponseChunk): void {
    const kind = summaryIndex === undefined ? 'content' : 'summary'
    const index = summaryIndex ?? contentIndex
    if (index === undefined) return
    known[kind] ??= []
    const list = known[kind]
    if (/part\.added$/.test(type)) {
      if (index !== list.length) throw new Error(`Part ${String(index)} is added behind ${list.length}`)
      list.push({})
    } else if (Number(index) >= list.length) throw new Error(`${type} of a part that is missing: ${String(index)}`)
  }

  function checkComplete(output: Item[]): void {
    for (const [at, item] of items) {
      const replacement = output.find(other => other.id === item.id)
      if (replacement) checkSame(item, replacement)
      else if (!closed.has(at)) throw new Error(`Item ${item.id} is not finished and not in the output`)
    }
  }

  /** An item that the reader does not know takes its place in the output as its index. */
  function checkPositions(output: Item[]): void {
    const indexOf = new Map(Array.from(items, ([at, item]) => [item.id, at]))
    const taken = output.map((item, place) => indexOf.get(item.id) ?? place)
    if (new Set(taken).size < taken.length) throw new Error('Conflicting output positions')
    for (const [place, item] of output.entries()) {
      const known = items.get(taken[place] ?? -1)
      if (known) checkSame(known, item)
    }
  }
}

function checkSame(known: Item, other: Item): void {
  if (known.id !== other.id || known.type !== other.type) throw new Error(`Item ${known.id} of type ${known.type} became ${other.id}`)
}

function isReasoningPart({ type, part }: ResponseChunk): boolean {
  return type.startsWith('response.content_part.') && isRecord(part) && part.type === 'reasoning_text'
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
