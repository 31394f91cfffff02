/** The span of one call of a model, below the span of its turn. */
import { plainSpan, type Span } from '@rivulet/runtime/trace'
import type { TokenCounts } from './model-events.ts'

export type ChatSpan = { span: Span; end(how: 'done' | 'error', usage?: TokenCounts): void }

export function startChatSpan(parent: Span | undefined, model: string | undefined): ChatSpan {
  const named = model === undefined ? {} : { 'gen_ai.request.model': model }
  const attributes = { 'gen_ai.operation.name': 'chat', ...named }
  const span = parent?.start(model === undefined ? 'chat' : `chat ${model}`, { kind: 'client', attributes }) ?? plainSpan('')
  return { span, end }

  function end(how: 'done' | 'error', { inputTokens, outputTokens }: TokenCounts = {}): void {
    const counts = {
      ...(inputTokens !== undefined && { 'gen_ai.usage.input_tokens': inputTokens }),
      ...(outputTokens !== undefined && { 'gen_ai.usage.output_tokens': outputTokens }),
    }
    span.end({ attributes: counts, ...(how === 'error' && { failure: { code: 'model_failed' } }) })
  }
}
