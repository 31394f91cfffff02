/**
 * The sources of a text. A provider may send them before, with or after the text, and more than once. Each is kept once, in the metadata of
 * the latest text; when that text is already closed, a custom update carries them.
 */
import { type Json, toStorableJson } from '@rivulet/protocol'
import type { ResponseWriter } from '../model/response-writer.ts'
import type { AsideBudget } from './aside-budget.ts'
import { fieldsOf } from './provider-call.ts'

const maxCitations = 256

export function createCitations(writer: ResponseWriter, keep: AsideBudget): { add(citation: unknown): void; flush(): void } {
  const known = new Map<string, Json>()
  let isAttached = true
  return { add, flush }

  function add(given: unknown): void {
    const citation = toStorableJson(given, 16)
    const { url } = fieldsOf(citation)
    const key = typeof url === 'string' ? url : JSON.stringify(citation)
    if (known.has(key) || known.size >= maxCitations) return
    keep(citation)
    known.set(key, citation)
    isAttached = false
    flush()
  }

  /** Attaches the sources that arrived before there was a text. */
  function flush(): void {
    const block = writer.latestText()
    if (isAttached || block === null) return
    isAttached = true
    const citations = Array.from(known.values())
    if (!writer.annotate(block, { citations })) writer.notice('citations', citations, block)
  }
}
