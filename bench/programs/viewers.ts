/**
 * The load: viewers on raw sockets, in a process of their own. Each one hears the deltas of one task and checks that they come in order, each
 * once, none missing.
 */
import { connect, type Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { answerQuestions } from '../child.ts'
import type { Heard, Opening } from '../crowd.ts'
import { now } from '../speech.ts'
import { createHearing, createTally } from './hearing.ts'
import { createStreamReader } from './stream-reader.ts'

/** As many as a listening socket lets wait. */
const wave = 200
/** How long nobody may hear anything before somebody is told that it is over. */
const maxSilenceMs = 60_000

type Viewer = { socket: Socket; opened: Promise<void>; heardAll: Promise<void> }

let viewers: Viewer[] = []
let tally = createTally(0)
let openingAt = 0
let cpuBefore = process.cpuUsage()
const lag = monitorEventLoopDelay({ resolution: 5 })

answerQuestions({ open, hear, close })

/** More viewers, up to so many. */
async function open({ requests, viewersEach, deltas }: Opening): Promise<void> {
  const count = requests.length * viewersEach
  tally = createTally(count * deltas)
  openingAt = now()
  while (viewers.length < count) {
    const more = Array.from({ length: Math.min(wave, count - viewers.length) }, (_, i) => {
      const request = requests[(viewers.length + i) % requests.length]
      if (!request) throw new Error('There is nothing to watch')
      return watch(request, deltas)
    })
    viewers.push(...more)
    await Promise.all(more.map(({ opened }) => opened))
  }
  lag.reset()
  lag.enable()
  cpuBefore = process.cpuUsage()
}

/** Resolves when everybody has heard everything. */
async function hear(): Promise<Heard> {
  await Promise.race([Promise.all(viewers.map(({ heardAll }) => heardAll)), silence()])
  const { user, system } = process.cpuUsage(cpuBefore)
  lag.disable()
  const { latencies, ...heard } = tally
  const sorted = latencies.slice(0, heard.deliveries).sort()
  const ms = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) / 1e3
  return {
    ...{ ...heard, openingAt, p50Ms: ms(0.5), p99Ms: ms(0.99), maxMs: ms(1) },
    ...{ lagMs: lag.percentile(99) / 1e6, lagMaxMs: lag.max / 1e6, cpuSeconds: (user + system) / 1e6 },
  }
}

async function close(): Promise<void> {
  const closed = viewers.map(({ socket }) => new Promise(resolve => (socket.closed ? resolve(null) : socket.once('close', resolve))))
  for (const { socket } of viewers) socket.destroy()
  viewers = []
  await Promise.all(closed)
}

function watch({ port, head }: Opening['requests'][number], deltas: number): Viewer {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const hearing = createHearing(tally)
  const opened = createPromise()
  const heardAll = createPromise()
  const reader = createStreamReader(text => {
    hearing.take(text, now())
    if (hearing.last() >= deltas) heardAll.settle()
  })
  socket.on('data', bytes => {
    try {
      reader.feed(bytes)
      if (reader.hasHead()) opened.settle()
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  })
  socket.on('error', fail)
  socket.on('close', () => fail(new Error(`The stream ended after ${hearing.last()} of ${deltas}`)))
  socket.write(`${head}\r\n\r\n`)
  if (deltas === 0) heardAll.settle()
  return { socket, opened: opened.promise, heardAll: heardAll.promise }

  function fail(error: Error): void {
    opened.settle(error)
    heardAll.settle(error)
    socket.destroy()
  }
}

/** Fails when nothing more comes. */
function silence(): Promise<never> {
  return new Promise((_, reject) => {
    let before = -1
    const check = setInterval(() => {
      if (tally.deliveries === before) reject(new Error(`Nothing more came after ${before} deltas, for ${maxSilenceMs / 1e3} s`))
      before = tally.deliveries
    }, maxSilenceMs)
    check.unref()
  })
}

function createPromise(): { promise: Promise<void>; settle: (error?: Error) => void } {
  let settle: (error?: Error) => void = () => {}
  const promise = new Promise<void>((resolve, reject) => {
    settle = error => (error ? reject(error) : resolve())
  })
  // Nobody may be waiting for it when it fails.
  promise.catch(() => {})
  return { promise, settle }
}
