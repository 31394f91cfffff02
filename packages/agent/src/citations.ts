/**
 * The sources of a text. They may come before, with or after it, and more than once; each is kept once, in the metadata of the text that was
 * said last. Where that text is closed already they are a notice beside it.
 */
import { type Json, toStorableJson } from '@rivulet/protocol'
import type { AsideBudget } from './aside-budget.ts'
import { fieldsOf } from './provider-call.ts'
import type { ResponseWriter } from './response-writer.ts'

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

  /** Attaches what came before there was a text. */
  function flush(): void {
    const block = writer.latestText()
    if (isAttached || block === null) return
    isAttached = true
    const citations = Array.from(known.values())
    if (!writer.annotate(block, { citations })) writer.notice('citations', citations, block)
  }
}
