/** What stands at the other end of the AI SDK's stream, in short: its reader, and a client that joins or comes back. The real one is in test/sdks. */
import { Narrator } from '@rivulet/narrator'
import type { UiChunk } from '@rivulet/views/ai-sdk'
import type { Entry } from '../../../test/support/logs/log-entries.ts'
import type { Past } from '../src/protocols/ai-sdk/ai-sdk-stream.ts'

const callStates: Record<string, string> = {
  'tool-input-start': 'input-streaming',
  'tool-input-available': 'input-available',
  'tool-input-error': 'output-error',
  'tool-output-available': 'output-available',
  'tool-output-error': 'output-error',
}

/** The parts that the chunks add up to. */
export function readChunks(chunks: UiChunk[]): Record<string, unknown>[] {
  let parts: Record<string, unknown>[] = []
  let open = new Map<unknown, Record<string, unknown>>()
  for (const { type, id, delta: added, toolCallId, ...fields } of chunks) {
    const [kind = '', step = ''] = type.split(/-(?=[^-]*$)/)
    const tool = () => parts.find(part => part.toolCallId === toolCallId)
    if (type === 'reset-step') {
      parts = []
      open = new Map()
    } else if (/^(text|reasoning)-start$/.test(type)) {
      const part = { type: kind, text: '', state: 'streaming' }
      parts.push(part)
      open.set(id, part)
    } else if (/^(text|reasoning)-(delta|end)$/.test(type)) {
      const part = open.get(id)
      if (!part) throw new Error(`${type} of a part that is not open: ${id}`)
      if (step === 'delta') part.text += String(added)
      else part.state = 'done'
      if (step === 'end') open.delete(id)
    } else if (type.startsWith('tool-')) {
      if (/^tool-(output|input-delta)/.test(type) && !tool()) throw new Error(`Of a call that is not known: ${toolCallId}`)
      if (!tool()) parts.push({ type: 'dynamic-tool', toolCallId })
      const { inputTextDelta: _, dynamic: __, ...said } = fields
      // As the SDK does it: whatever is said of a call's input forgets its output.
      const state = type === 'tool-input-delta' ? 'input-streaming' : callStates[type]
      Object.assign(tool() ?? {}, { output: undefined, errorText: undefined, preliminary: undefined }, said, { state })
    } else if (type === 'data-json') {
      const known = parts.find(part => part.id === id)
      if (known) known.data = fields.data
      else parts.push({ type, id, ...fields })
    } else if (type === 'file' || type.startsWith('source-')) {
      parts.push({ type, ...fields })
    }
  }
  return parts
}

/** The events that a viewer has when it reconnects with the cursor of the last entry. */
export function pastOf(log: Entry[]): Past {
  const narrator = new Narrator({ turnNumber: null })
  for (const { cursor, event } of log) narrator.recall(cursor, event)
  return { narrator, isAtEnd: log.at(-1)?.event.type === 'turn.finished' }
}
