/** The Vercel AI SDK in a turn that asks people. The SDK itself is not imported: its results are known by their shape, which is that of version 7. */
export { type AiSdkConversation, type ApprovedStream, type StreamLike, streamWithApprovals } from './approvals.ts'
