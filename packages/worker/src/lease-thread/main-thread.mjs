// @ts-check
/**
 * Evaluates code in a main thread whose event loop is blocked. The inspector interrupts JavaScript, including an endless loop and a regular expression
 * that backtracks. It cannot interrupt native code.
 */
import { Session } from 'node:inspector'

const replyMs = 2_000

/** The call stack, innermost first, with the async functions that await it. */
const stackExpression = `(() => {
  const { prepareStackTrace, stackTraceLimit } = Error
  try {
    Error.stackTraceLimit = 200
    Error.prepareStackTrace = (_, sites) => sites.filter(site => site.getFileName()).map(String)
    return new Error().stack
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit })
  }
})()`

/** @returns {Promise<string[]>} Empty when the main thread does not respond. */
export async function readStack() {
  const value = await evaluate(stackExpression)
  return Array.isArray(value) ? value.map(String) : []
}

/**
 * Ends the process with this exit code, or with SIGKILL when the main thread does not respond: a worker thread cannot exit its process.
 *
 * @param {number} exitCode
 */
export async function endProcess(exitCode) {
  await evaluate(`process.exit(${exitCode})`)
  process.kill(process.pid, 'SIGKILL')
}

/**
 * @param {string} expression
 * @returns {Promise<unknown>} Undefined when the main thread does not respond in time.
 */
async function evaluate(expression) {
  const session = new Session()
  /** @type {NodeJS.Timeout | undefined} */
  let patience
  try {
    session.connectToMainThread()
    return await new Promise(resolve => {
      patience = setTimeout(resolve, replyMs)
      session.post('Runtime.evaluate', { expression, returnByValue: true }, (_, reply) => resolve(reply?.result.value))
    })
  } catch {
    return undefined
  } finally {
    clearTimeout(patience)
    session.disconnect()
  }
}
