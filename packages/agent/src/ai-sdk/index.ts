/** Converts the Vercel AI SDK's streams to the protocol's updates, and histories to its messages. Does not import the SDK: it knows the shapes. */
export { type AiSdkPart, fromAiSdk } from './from-ai-sdk.ts'
export { type AiSdkMessage, toModelMessages } from './model-messages.ts'
