/** What this package uses of `@ag-ui/client`, so that it compiles without it. test/sdks compiles it with the types of that package itself. */
declare module '@ag-ui/client' {
  export type RunAgentInput = { threadId: string; runId: string }
  export type HttpAgentFetch = (url: string, init: RequestInit) => Promise<Response>
  export type HttpAgentConfig = { url: string; headers?: Record<string, string>; threadId?: string; fetch?: HttpAgentFetch }
  type Events = { subscribe(next: (event: object) => void): unknown }

  export class HttpAgent {
    constructor(config: HttpAgentConfig)
    url: string
    headers: Record<string, string>
    threadId: string
    fetch: HttpAgentFetch
    abortController: AbortController
    debugLogger: unknown
    run(input: RunAgentInput): Events
    protected connect(input: RunAgentInput): Events
    abortRun(): void
    clone(): HttpAgent
  }

  export function runHttpRequest(request: () => Promise<Response>): unknown
  export function transformHttpEventStream(source: unknown, debugLogger?: unknown): Events
}
