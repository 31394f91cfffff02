/** The parts of the AI SDK's `streamText` that are read here. Versions 5 to 7 agree on these shapes. */

export type StreamPart =
  | { type: 'text-start' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-end'; id: string; citations?: unknown[] }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; text: string }
  | { type: 'tool-input-start'; id: string; toolName: string; inputEncoding?: 'json' | 'text' }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: unknown }
  | { type: 'tool-result'; toolCallId: string; toolName: string; output: unknown; preliminary?: boolean }
  | { type: 'tool-error'; toolCallId: string; toolName: string; error: unknown }
  | { type: 'tool-output-denied'; toolCallId: string; toolName: string; reason?: string | undefined }
  | { type: 'source'; sourceType: string; id: string; url?: string; title?: string; mediaType?: string; filename?: string }
  | { type: 'file' | 'reasoning-file'; file: { base64: string; mediaType: string } }
  | { type: 'custom'; kind: string; providerMetadata?: unknown }
  | { type: 'finish-step'; finishReason: string; usage: StepUsage; response?: { modelId?: string } }
  | { type: 'abort' }
  | { type: 'error'; error: unknown }

export type StepUsage = {
  inputTokens?: number | undefined
  outputTokens?: number | undefined
  totalTokens?: number | undefined
  /** Version 5. */
  reasoningTokens?: number | undefined
  cachedInputTokens?: number | undefined
  /** Versions 6 and 7. */
  inputTokenDetails?: { cacheReadTokens?: number | undefined; cacheWriteTokens?: number | undefined } | undefined
  outputTokenDetails?: { reasoningTokens?: number | undefined } | undefined
}
