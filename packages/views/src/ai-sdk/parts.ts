/** The messages that `useChat` shows, as far as a task has them: assignable to `UIMessage` of the AI SDK, without importing it. */
export type UiMessage = { id: string; role: 'user' | 'assistant'; metadata: { task: string; turn: number }; parts: UiMessagePart[] }

type PartState = 'streaming' | 'done'

export type UiMessagePart =
  | { type: 'text'; text: string; state: PartState }
  | { type: 'reasoning'; id: string; text: string; state: PartState }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'file'; mediaType: string; url: string }
  | { type: 'data-json'; id: string; data: unknown }
  | UiToolPart

type Approval<Approved> = { id: string; requestReason?: string; reason?: string; approved: Approved }

export type UiToolPart = { type: 'dynamic-tool'; toolCallId: string; toolName: string; providerExecuted?: boolean } & (
  | { state: 'input-streaming' }
  | { state: 'input-available'; input: unknown }
  | { state: 'approval-requested'; input: unknown; approval: { id: string; requestReason?: string } }
  | { state: 'approval-responded'; input: unknown; approval: Approval<boolean> }
  | { state: 'output-available'; input: unknown; output: unknown; preliminary?: boolean; approval?: Approval<true> }
  | { state: 'output-error'; input: unknown; errorText: string; approval?: Approval<true> }
  | { state: 'output-denied'; input: unknown; approval: Approval<false> }
)
