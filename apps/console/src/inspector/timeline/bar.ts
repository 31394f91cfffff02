/** A bar of the timeline. */
import type { Content } from '@rivulet/client'

export type Bar = {
  kind: 'turn' | 'attempt' | 'step' | 'message' | 'tool' | 'wait' | 'child'
  label: string
  from: number
  /** Null while it is running. */
  to: number | null
  outcome: 'open' | 'good' | 'bad' | 'stopped'
  /** The event that began it; null where the log has expired. */
  cursor: string | null
  /** The index of its message, or of its first one; null if it has none. */
  message: number | null
}

/** A tool that failed has responded completely, so its message does not have the status `failed`. */
export function isFailure(content: Content): boolean {
  return content.type === 'tool_response' && content.isError
}

export function kindOf(type: string): Bar['kind'] {
  return type === 'tool_response' ? 'tool' : 'message'
}

export function labelOf({ index, content }: { index: number; content: { type: string; name?: string | undefined } }): string {
  return content.name ? `${index} ${content.name}` : `${index} ${content.type}`
}
