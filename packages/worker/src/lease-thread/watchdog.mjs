// @ts-check
/**
 * Ends the process when the main thread's event loop is blocked for `watchdogMs`. Before that, it reports the blocking turn to the server, which counts
 * a death for it, and releases the other turns.
 *
 * The blocking turn is read from the stack: each handler is called by a function named `turn <id>` (`turn/handler.ts`), and V8 lists that function below
 * everything the handler calls or awaits. If no turn is listed (a callback, native code), every turn that runs here is a suspect and counts a death.
 */
import { writeSync } from 'node:fs'
import { endProcess, readStack } from './main-thread.mjs'

/** How long the report is retried: a turn that is not released waits for the end of its lease. */
const reportMs = 5_000
const maxStackChars = 4_000
/** EX_SOFTWARE of sysexits.h. */
const exitCode = 70
/** Written to directly, because `process.stdout` of a worker thread goes through the main thread. */
const stdout = 1

/**
 * @typedef {import('./messages.ts').Held} Held
 * @param {{
 *   post: ReturnType<typeof import('./post.mjs').createPost>,
 *   watchdogMs: number,
 *   pulse: () => number,
 *   isHeldByDebugger: () => boolean,
 *   held: ReadonlyMap<number, Held>,
 *   onBlocked: () => void,
 * }} deps
 */
export function startWatchdog({ post, watchdogMs, pulse, isHeldByDebugger, held, onBlocked }) {
  const tickMs = tickOf(watchdogMs)
  let lastPulse = pulse()
  let lastTick = performance.now()
  let stillMs = 0
  const timer = setInterval(look, tickMs)

  function look() {
    const now = performance.now()
    // Time in which this thread did not run either does not count: the process was frozen, or got no CPU.
    const passed = Math.min(now - lastTick, 2 * tickMs)
    lastTick = now
    const seen = pulse()
    stillMs = seen === lastPulse && !isHeldByDebugger() ? stillMs + passed : 0
    lastPulse = seen
    if (stillMs < watchdogMs) return
    clearInterval(timer)
    onBlocked()
    void end(Math.round(stillMs))
  }

  /** @param {number} ms */
  async function end(ms) {
    const stack = await readStack()
    const { blamed, others } = judge([...held.values()], stack)
    // Function names may have characters that the server rejects.
    const text = stack
      .join('\n')
      .replaceAll(/[^\n\x20-\x7e]/g, '?')
      .slice(0, maxStackChars)
    const turns = blamed.map(({ turnId }) => turnId)
    log({ blockedMs: ms, turns, released: others.length, stack: text }, 'the event loop was blocked; this process ends')
    const report = [...blamed.map(holding => ({ ...holding, blocked: { ms, stack: text } })), ...others]
    await Promise.race([Promise.all(report.map(body => insist(body))), new Promise(resolve => setTimeout(resolve, reportMs))])
    await endProcess(exitCode)
  }

  /** @param {object} body */
  async function insist(body) {
    for (;;) {
      try {
        return await post('release', body)
      } catch {
        await new Promise(resolve => setTimeout(resolve, 200))
      }
    }
  }
}

/** The interval of the main thread's pulse, and of the checks here. @param {number} watchdogMs */
export function tickOf(watchdogMs) {
  return Math.min(500, Math.max(20, watchdogMs / 20))
}

/**
 * A turn that runs in its own process is neither blamed nor released: that process holds it.
 *
 * @param {Held[]} held
 * @param {string[]} stack
 */
function judge(held, stack) {
  const named = new Set(stack.flatMap(line => /\bturn ([\da-f-]{36})\b/.exec(line)?.[1] ?? []))
  const here = held.filter(({ place }) => place === 'here')
  const found = here.filter(({ holding }) => named.has(holding.turnId))
  const blamed = found.length > 0 ? found : here
  const others = held.filter(one => one.place !== 'apart' && !blamed.includes(one))
  return { blamed: blamed.map(({ holding }) => holding), others: others.map(({ holding }) => holding) }
}

/**
 * Writes a line in the format of the worker's log, whose writer is the blocked thread.
 *
 * @param {object} fields
 * @param {string} msg
 */
function log(fields, msg) {
  try {
    writeSync(stdout, `${JSON.stringify({ level: 50, time: Date.now(), pid: process.pid, ...fields, msg })}\n`)
  } catch {
    // The pipe is closed or full. The API logs the report, too.
  }
}
