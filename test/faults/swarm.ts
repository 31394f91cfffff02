/**
 * Thousands of viewers in a process of their own, over raw sockets, started by `viewers.test.ts`: the API they watch shall not share a process
 * with what it costs to watch. A disconnected viewer reconnects to the next address, after its `retry:`, with its last cursor.
 *
 * What the tasks say is numbered words (`w17 `), so that each viewer knows the next word: a missing or repeated word is a fault.
 */
import { connect } from 'node:net'

export type SwarmOrder = { tasks: string[]; urls: string[]; count: number }

export type SwarmReport = {
  /** Viewers that are connected and have heard everything that there was. */
  up: number
  /** Viewers that received the end. */
  ended: number
  /** How often a viewer was asked to reconnect later. */
  rejections: number
  /** The words of the viewer that has the fewest. */
  words: number
  /** From when a word was said to when it was heard, since the last `forget`, in milliseconds. */
  latencies: { p50: number; p99: number; max: number; count: number }
  faults: string[]
}

type SwarmViewer = { task: string; cursor: string | null; words: number; retryMs: number; isUp: boolean; hasEnded: boolean; visits: number }

/** As many as a listening socket lets wait. */
const wave = 250
const viewers: SwarmViewer[] = []
const faults: string[] = []
let rejections = 0
let latencies: number[] = []

process.on('message', (message: SwarmOrder | 'report' | 'forget') => {
  if (message === 'report') process.send?.(report())
  else if (message === 'forget') latencies = []
  else void open(message)
})
process.on('disconnect', () => process.exit())

async function open({ tasks, urls, count }: SwarmOrder): Promise<void> {
  while (viewers.length < count) {
    const next = Array.from({ length: Math.min(wave, count - viewers.length) }, (_, i) =>
      newViewer(tasks[(viewers.length + i) % tasks.length]),
    )
    viewers.push(...next)
    for (const viewer of next) visit(viewer, urls)
    while (next.some(({ isUp }) => !isUp)) await new Promise(resolve => setTimeout(resolve, 10))
  }
}

function newViewer(task = ''): SwarmViewer {
  return { task, cursor: null, words: 0, retryMs: 1_000, isUp: false, hasEnded: false, visits: 0 }
}

/** HTTP/1.0: the stream comes as it is, without chunks. */
function visit(viewer: SwarmViewer, urls: readonly string[]): void {
  const { hostname, port } = new URL(urls[viewer.visits % urls.length] ?? '')
  viewer.visits += 1
  const socket = connect({ host: hostname, port: Number(port) })
  const resume = viewer.cursor ? `last-event-id: ${viewer.cursor}\r\n` : ''
  let rest = ''
  let isOpen = false
  socket.setEncoding('latin1')
  socket.write(`GET /v1/tasks/${viewer.task}/events HTTP/1.0\r\nhost: ${hostname}\r\naccept: text/event-stream\r\n${resume}\r\n`)
  socket.on('data', (text: string) => {
    rest += text
    if (!isOpen) isOpen = takeHead()
    if (!isOpen) return
    const blocks = rest.split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) hear(viewer, block)
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    viewer.isUp = false
    if (!viewer.hasEnded) setTimeout(() => visit(viewer, urls), viewer.retryMs)
  })

  function takeHead(): boolean {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return false
    const status = Number(/^HTTP\/1\.\d (\d+)/.exec(rest)?.[1])
    if (status === 204) viewer.hasEnded = true
    else if (status === 503 || status === 408) rejections += 1
    else if (status !== 200) fault(viewer, `was answered ${rest.slice(0, rest.indexOf('\r\n'))}`)
    rest = rest.slice(end + 4)
    return true
  }
}

function hear(viewer: SwarmViewer, block: string): void {
  const retry = /^retry: (\d+)/m.exec(block)
  if (retry) viewer.retryMs = Number(retry[1])
  const [, type, json, id] = /^event: (\S+)\ndata: (.+)\nid: (\S+)$/m.exec(block) ?? []
  if (!id || !json) return
  viewer.cursor = id
  if (type === 'snapshot') hearAgain(viewer, json)
  if (type === 'message.delta') hearMore(viewer, json)
  if (type === 'caught_up') viewer.isUp = true
  if (type === 'end') viewer.hasEnded = true
}

function hearAgain(viewer: SwarmViewer, json: string): void {
  const words = wordsIn(JSON.stringify((JSON.parse(json) as { messages: unknown }).messages))
  if (words.some((word, i) => word !== i) || words.length < viewer.words)
    fault(viewer, `knew ${viewer.words} words, and a snapshot has ${words}`)
  viewer.words = words.length
}

function hearMore(viewer: SwarmViewer, json: string): void {
  const { at, delta } = JSON.parse(json) as { at: number; delta: { text: string } }
  latencies.push(Date.now() - at)
  for (const word of wordsIn(delta.text)) {
    if (word !== viewer.words) fault(viewer, `heard word ${word} where ${viewer.words} comes next`)
    viewer.words = word + 1
  }
}

function wordsIn(text: string): number[] {
  return Array.from(text.matchAll(/\bw(\d+) /g), ([, number]) => Number(number))
}

function fault({ task, visits }: SwarmViewer, what: string): void {
  if (faults.length < 20) faults.push(`a viewer of ${task}, on its visit ${visits}, ${what}`)
}

function report(): SwarmReport {
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * sorted.length)] ?? 0
  return {
    up: viewers.filter(({ isUp }) => isUp).length,
    ended: viewers.filter(({ hasEnded }) => hasEnded).length,
    rejections,
    words: viewers.reduce((least, { words }) => Math.min(least, words), Number.POSITIVE_INFINITY),
    latencies: { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0, count: sorted.length },
    faults,
  }
}
