/** The viewers of a run, which run in another process. */
import { type Child, startChild } from './child.ts'

/** A viewer's request: its header lines, without the final empty line. A stream of several tasks has a body, and the deltas of so many tasks. */
export type ViewerRequest = { port: number; head: string; body?: string; tasks?: number }

export type Opening = { requests: ViewerRequest[]; viewersEach: number; deltas: number }

export type Received = {
  deliveries: number
  frames: number
  bytes: number
  /** The first few deltas that were out of order, lost or received twice. */
  faults: string[]
  /** On the clock of `now`. */
  openingAt: number
  firstAt: number
  /** When the last viewer had its first delta. */
  joinedAt: number
  lastAt: number
  /** From the sending of a delta to its receipt. */
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** The event loop lag of the viewers' process, 99th percentile. */
  lagMs: number
  lagMaxMs: number
  cpuSeconds: number
}

export type Crowd = {
  pid: number
  /** Resolves when every viewer has received its response head. Every task gets the same number of viewers. */
  open(opening: Opening): Promise<void>
  /** Resolves when every viewer has received every delta. Throws when a delta is lost, repeated or out of order. */
  receive(): Promise<Received>
  close(): Promise<void>
  stop(): Promise<void>
}

export async function startCrowd(): Promise<Crowd> {
  const child: Child = await startChild('programs/viewers.ts')
  let expected = 0
  return { pid: child.pid, open, receive, close: () => child.ask('close'), stop: child.stop }

  async function open(opening: Opening): Promise<void> {
    expected = deliveriesOf(opening)
    await child.ask('open', opening)
  }

  async function receive(): Promise<Received> {
    const received = await child.ask<Received>('receive')
    if (received.faults.length > 0) throw new Error(`Deltas were lost or out of order: ${received.faults.join('; ')}`)
    if (received.deliveries !== expected) throw new Error(`${received.deliveries} deltas were received, and ${expected} sent`)
    return received
  }
}

/** All deltas that the viewers of an opening get. */
export function deliveriesOf({ requests, viewersEach, deltas }: Opening): number {
  return requests.reduce((sum, { tasks = 1 }) => sum + tasks, 0) * viewersEach * deltas
}

/** The request for several tasks on one stream, from their first deltas on. */
export function requestForMany(url: string, tasks: readonly string[], headers: Record<string, string>): ViewerRequest {
  const { host, port } = new URL(url)
  const body = JSON.stringify({ tasks: Object.fromEntries(tasks.map(task => [task, '0-0'])) })
  const fields = { host, accept: 'text/event-stream', 'content-type': 'application/json', 'content-length': body.length, ...headers }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return { port: Number(port), head: ['POST /v1/events HTTP/1.1', ...lines].join('\r\n'), body, tasks: tasks.length }
}

export function requestFor(url: string, path: string, headers: Record<string, string> = {}): ViewerRequest {
  const { host, port } = new URL(url)
  const fields = Object.entries({ host, accept: 'text/event-stream', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return { port: Number(port), head: [`GET ${path} HTTP/1.1`, ...fields].join('\r\n') }
}
