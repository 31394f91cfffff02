/**
 * The process that keeps one server running for its caller, and ends it when the caller closes the channel or dies.
 *
 * This order makes a start after any crash safe: lock the folder, end a server that an earlier guardian left running, start, report. The folder
 * is changed only under the lock. stdout and stderr are the log in the data folder, shared with the server. Its last line gives the reason for
 * the end; when the guardian was killed, its caller writes that line.
 */
import { copyFileSync, ftruncateSync } from 'node:fs'
import { lockFolder } from './folder-lock.ts'
import { type GuardianJob, type GuardianReport, logOf } from './guardian-handle.ts'
import { note } from './note.ts'
import type { RunningServer } from './running-server.ts'

// No other user reads what a server keeps.
process.umask(0o077)
const job = JSON.parse(process.argv[2] ?? 'null') as GuardianJob
const stopping = new AbortController()
const caller = process.ppid
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => stopping.abort(`it received ${signal}`))
process.once('disconnect', () => stopping.abort(process.ppid === caller ? 'its caller stopped it' : 'its caller is gone'))
if (!process.connected) stopping.abort('its caller is gone')

const server = await start()
if (server) await guard(server)
process.exit()

async function start(): Promise<RunningServer | null> {
  try {
    await lockFolder(job.folder, stopping.signal)
    // Keep the log of the previous run, because it explains why the server has to be started again.
    copyFileSync(logOf(job.folder), `${logOf(job.folder)}.before`)
    ftruncateSync(process.stdout.fd)
    const run =
      job.engine === 'redis' ? (await import('../redis/redis.ts')).runRedis : (await import('../postgres/postgres.ts')).runPostgres
    return await run(job, stopping.signal)
  } catch (error) {
    if (stopping.signal.aborted) return null
    console.error(error)
    await report({ failed: error instanceof Error ? error.message : String(error) })
    process.exitCode = 1
    return null
  }
}

async function guard(server: RunningServer): Promise<void> {
  const { ended, stop, ...started } = server
  const stopped = new Promise<string>(resolve => stopping.signal.addEventListener('abort', () => resolve(stopping.signal.reason)))
  let reason: string = stopping.signal.reason
  if (!stopping.signal.aborted) {
    await report({ started })
    reason = await Promise.race([stopped, ended.then(how => `${started.name} ended by itself: ${how}`)])
  }
  try {
    await stop()
    note(`ends, because ${reason}`)
  } catch (error) {
    note(`ends, because ${reason}, but could not stop ${started.name} cleanly`)
    console.error(error)
    process.exitCode = 1
  }
}

/** Does nothing when the caller is gone. */
function report(message: GuardianReport): Promise<void> {
  return new Promise(resolve => {
    if (!process.send || !process.connected) resolve()
    else process.send(message, undefined, {}, () => resolve())
  })
}
