// @ts-check
/**
 * The lease thread of a worker process: it renews leases, and watches the event loop of the main thread.
 *
 * Plain JavaScript that imports only Node's modules, so that it loads in milliseconds, unchanged, from the sources, from tests and beside a bundle.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { startBeats } from './beats.mjs'
import { createPost } from './post.mjs'
import { startWatchdog } from './watchdog.mjs'

/** @type {import('./messages.ts').ThreadOptions} */
const options = workerData
const shared = new Int32Array(options.shared)
/** @type {Map<number, import('./messages.ts').Held>} */
const held = new Map()
const post = createPost(options)
const beats = startBeats({ post, options, held, tell: message => parentPort?.postMessage(message) })

if (options.watchdogMs !== null) {
  startWatchdog({
    ...{ post, held, watchdogMs: options.watchdogMs },
    pulse: () => Atomics.load(shared, 0),
    isHeldByDebugger: () => Atomics.load(shared, 1) === 1,
    onBlocked: beats.stop,
  })
}

/** @param {import('./messages.ts').ToThread} message */
function hear(message) {
  if ('hold' in message) held.set(message.hold, message.held)
  else if ('drop' in message) held.delete(message.drop)
  else if ('fenced' in message) beats.noteFenced(message.fenced)
  else void beats.beat()
}

parentPort?.on('message', hear)
