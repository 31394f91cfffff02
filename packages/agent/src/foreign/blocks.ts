/**
 * The content blocks of a run as messages, numbered in the order in which they open. The close of a block is held back until the next one
 * opens or the step ends, so that the last close of a step can carry its stop reason and usage.
 */
import {
  type Content,
  type Delta,
  delta,
  done,
  full,
  type JsonObject,
  reasoning,
  start,
  type Update,
  type UpdateOf,
} from '@rivulet/protocol'

export type Block = { readonly index: number; isClosing: boolean; isClosed: boolean; metadata: JsonObject }

export type Blocks = ReturnType<typeof createBlocks>

export function createBlocks(emit: (update: Update) => void) {
  const unclosed = new Set<Block>()
  let count = 0
  let latest: Block | null = null
  return { open, append, annotate, replace, close, closeGroup, settle, closeAll }

  function open(content: Content, metadata: JsonObject = {}): Block {
    settle()
    const block: Block = { index: count, isClosing: false, isClosed: false, metadata }
    count += 1
    latest = block
    unclosed.add(block)
    emit(start(block.index, content, Object.keys(metadata).length > 0 ? metadata : undefined))
    return block
  }

  function append(block: Block, addition: Delta): void {
    if (!block.isClosing && !block.isClosed) emit(delta(block.index, addition))
  }

  /** Adds fields to the block's metadata. Returns false when the block is already closed. */
  function annotate(block: Block, fields: JsonObject): boolean {
    if (block.isClosed) return false
    block.metadata = { ...block.metadata, ...fields }
    emit(delta(block.index, { type: 'metadata', metadata: block.metadata }))
    return true
  }

  function replace(block: Block, content: Content): void {
    unclosed.delete(block)
    block.isClosed = true
    emit(full(block.index, content))
  }

  function close(block: Block): void {
    block.isClosing = true
  }

  /** Closes the blocks of one response while others may be open: the last of them that is not closed carries `last`. */
  function closeGroup(group: readonly Block[], last: End): void {
    const unfinished = group.filter(block => !block.isClosed)
    if (unfinished.length === 0 && last.usage) unfinished.push(open(reasoning()))
    for (const block of unfinished) finish(block, block === unfinished.at(-1) ? last : {})
  }

  /** Emits the closes that were held back. */
  function settle(): void {
    for (const block of unclosed) if (block.isClosing) finish(block)
  }

  /** Closes all blocks: `how` applies to those the run has not closed, `last` to the latest block. */
  function closeAll(how: End, last: End = {}): void {
    // The latest block was replaced, or there are no blocks, so no close can carry the usage: an empty reasoning block does.
    if (last.usage && (latest === null || latest.isClosed)) close(open(reasoning()))
    for (const block of unclosed) finish(block, { ...(block.isClosing ? {} : how), ...(block === latest ? last : {}) })
  }

  function finish(block: Block, how?: End): void {
    unclosed.delete(block)
    block.isClosed = true
    emit(done(block.index, how))
  }
}

export type End = Omit<UpdateOf<'done'>, 'type' | 'index'>
