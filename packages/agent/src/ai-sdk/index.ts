/** The Vercel AI SDK's streams as the protocol's updates. The SDK itself is not imported: its parts are known by their shape. */
export { type AiSdkPart, fromAiSdk } from './from-ai-sdk.ts'
