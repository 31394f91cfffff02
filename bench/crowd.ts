/** The viewers of a run, which live in a process of their own. */
import { type Child, startChild } from './child.ts'

/** What a viewer asks for: the lines of its request, without the empty one at their end. */
export type ViewerRequest = { port: number; head: string }

export type Opening = { requests: ViewerRequest[]; viewersEach: number; deltas: number }

export type Heard = {
  deliveries: number
  frames: number
  bytes: number
  /** The first few deltas that were out of order, lost or heard twice. */
  faults: string[]
  /** On the clock of `now`. */
  openingAt: number
  firstAt: number
  lastAt: number
  /** From when a delta was said to when it was heard. */
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** How late this process itself was at times: 99 of 100 rounds were better. */
  lagMs: number
  lagMaxMs: number
  cpuSeconds: number
}

export type Crowd = {
  pid: number
  /** Resolves when each of them has an answer that it can listen to. Every task gets as many viewers. */
  open(opening: Opening): Promise<void>
  /** Resolves when each has heard everything; fails when one cannot. What was heard is what was said, or this throws. */
  hear(): Promise<Heard>
  close(): Promise<void>
  stop(): Promise<void>
}

export async function startCrowd(): Promise<Crowd> {
  const child: Child = await startChild('programs/viewers.ts')
  let expected = 0
  return { pid: child.pid, open, hear, close: () => child.ask('close'), stop: child.stop }

  async function open(opening: Opening): Promise<void> {
    expected = opening.requests.length * opening.viewersEach * opening.deltas
    await child.ask('open', opening)
  }

  async function hear(): Promise<Heard> {
    const heard = await child.ask<Heard>('hear')
    if (heard.faults.length > 0) throw new Error(`Something was lost or out of order: ${heard.faults.join('; ')}`)
    if (heard.deliveries !== expected) throw new Error(`${heard.deliveries} deltas were heard, and ${expected} said`)
    return heard
  }
}

export function requestFor(url: string, path: string, headers: Record<string, string> = {}): ViewerRequest {
  const { host, port } = new URL(url)
  const fields = Object.entries({ host, accept: 'text/event-stream', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return { port: Number(port), head: [`GET ${path} HTTP/1.1`, ...fields].join('\r\n') }
}
