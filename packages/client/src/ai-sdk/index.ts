/** `@rivulet/client/ai-sdk`: the transport of the AI SDK's `useChat`. It needs `ai`. */
export { RivuletChatTransport, type RivuletChatTransportOptions } from './rivulet-chat-transport.ts'
