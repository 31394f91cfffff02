/** What this package uses of `ai`, so that it compiles without it. test/sdks compiles it with the types of that package itself. */
declare module 'ai' {
  export type UIMessageChunk = { type: string; messageMetadata?: unknown }
  export type UIMessage = { id: string; role: 'system' | 'user' | 'assistant'; metadata?: unknown; parts: { type: string }[] }

  export interface ChatTransport<Message extends UIMessage> {
    readonly resumeStreamIsReplay?: boolean
    sendMessages(options: {
      trigger: 'submit-message' | 'regenerate-message'
      chatId: string
      messageId: string | undefined
      messages: Message[]
      abortSignal: AbortSignal | undefined
    }): Promise<ReadableStream<UIMessageChunk>>
    reconnectToStream(options: { chatId: string; abortSignal?: AbortSignal | undefined }): Promise<ReadableStream<UIMessageChunk> | null>
  }
}
