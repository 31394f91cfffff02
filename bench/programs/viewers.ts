/**
 * The load: viewers on raw sockets, in their own process. Each viewer receives the deltas of one task and checks that each arrives once and in
 * order.
 */
import { connect, type Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { handleRequests } from '../child.ts'
import { deliveriesOf, type Opening, type Received } from '../crowd.ts'
import { now } from '../measure/speech.ts'
import { createManyReceiver, createReceiver, createTally } from './receiver.ts'
import { createStreamReader } from './stream-reader.ts'

/** How many viewers connect at once: less than the backlog of a listening socket. */
const wave = 200
/** How long all viewers may be silent before the run is reported as over. */
const maxSilenceMs = 60_000

type Viewer = { socket: Socket; opened: Promise<void>; receivedAll: Promise<void> }

let viewers: Viewer[] = []
let tally = createTally(0)
let openingAt = 0
let cpuBefore = process.cpuUsage()
const lag = monitorEventLoopDelay({ resolution: 5 })

handleRequests({ open, receive, close })

/** Opens viewers until there are `viewersEach` for each request. */
async function open({ requests, viewersEach, deltas }: Opening): Promise<void> {
  const count = requests.length * viewersEach
  tally = createTally(deliveriesOf({ requests, viewersEach, deltas }))
  openingAt = now()
  while (viewers.length < count) {
    const more = Array.from({ length: Math.min(wave, count - viewers.length) }, (_, i) => {
      const request = requests[(viewers.length + i) % requests.length]
      if (!request) throw new Error('There are no requests')
      return watch(request, deltas)
    })
    viewers.push(...more)
    await Promise.all(more.map(({ opened }) => opened))
  }
  lag.reset()
  lag.enable()
  cpuBefore = process.cpuUsage()
}

/** Resolves when every viewer has received every mark. */
async function receive(): Promise<Received> {
  await Promise.race([Promise.all(viewers.map(({ receivedAll }) => receivedAll)), silence()])
  const { user, system } = process.cpuUsage(cpuBefore)
  lag.disable()
  const { latencies, ...received } = tally
  const sorted = latencies.slice(0, received.deliveries).sort()
  const ms = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) / 1e3
  return {
    ...{ ...received, openingAt, p50Ms: ms(0.5), p99Ms: ms(0.99), maxMs: ms(1) },
    ...{ lagMs: lag.percentile(99) / 1e6, lagMaxMs: lag.max / 1e6, cpuSeconds: (user + system) / 1e6 },
  }
}

async function close(): Promise<void> {
  const closed = viewers.map(({ socket }) => new Promise(resolve => (socket.closed ? resolve(null) : socket.once('close', resolve))))
  for (const { socket } of viewers) socket.destroy()
  viewers = []
  await Promise.all(closed)
}

function watch({ port, head, body = '', tasks }: Opening['requests'][number], deltas: number): Viewer {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const many = tasks === undefined ? null : createManyReceiver(tally, tasks)
  const receiver = many ?? createReceiver(tally)
  const opened = createPromise()
  const receivedAll = createPromise()
  const reader = createStreamReader(text => {
    receiver.take(text, now())
    if (receiver.last() >= deltas) receivedAll.settle()
  })
  socket.on('data', bytes => {
    try {
      reader.feed(bytes)
      // The head of a stream of several tasks comes before the tasks are watched.
      if (reader.hasHead() && (many?.isOpen() ?? true)) opened.settle()
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  })
  socket.on('error', fail)
  socket.on('close', () => fail(new Error(`The stream ended after ${receiver.last()} of ${deltas}`)))
  socket.write(`${head}\r\n\r\n${body}`)
  if (deltas === 0) receivedAll.settle()
  return { socket, opened: opened.promise, receivedAll: receivedAll.promise }

  function fail(error: Error): void {
    opened.settle(error)
    receivedAll.settle(error)
    socket.destroy()
  }
}

/** Rejects when no delta arrives for `maxSilenceMs`. */
function silence(): Promise<never> {
  return new Promise((_, reject) => {
    let before = -1
    const check = setInterval(() => {
      if (tally.deliveries === before) reject(new Error(`No delta arrived for ${maxSilenceMs / 1e3} s, after ${before}`))
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
  // It may reject while no caller awaits it.
  promise.catch(() => {})
  return { promise, settle }
}
