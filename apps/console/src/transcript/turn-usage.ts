/** Tokens of turns. */
import type { Usage } from '@rivulet/client'

export function tokensOf(usage: Usage | undefined): number {
  if (!usage) return 0
  return usage.totalTokens ?? (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
}
