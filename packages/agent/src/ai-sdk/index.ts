/** Converts the Vercel AI SDK's streams to the protocol's updates. Does not import the SDK: it recognizes parts by their shape. */
export { type AiSdkPart, fromAiSdk } from './from-ai-sdk.ts'
