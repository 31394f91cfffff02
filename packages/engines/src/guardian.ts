/**
 * The process that keeps one server running for its caller, and ends it when the caller closes the channel or dies.
 *
 * Order is what makes a start after any crash safe: lock the folder, end what an earlier guardian left running, start, report. Everything
 * that touches the folder happens behind the lock. stdout and stderr are the log in the data folder, shared with the server.
 */
import { ftruncateSync } from 'node:fs'
import { lockFolder } from './folder-lock.ts'
import type { GuardianJob, GuardianReport } from './guardian-handle.ts'
import type { RunningServer } from './running-server.ts'

const job = JSON.parse(process.argv[2] ?? 'null') as GuardianJob
const stopping = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => stopping.abort())
process.once('disconnect', () => stopping.abort())
if (!process.connected) stopping.abort()

const server = await start()
if (server) await guard(server)
process.exit()

async function start(): Promise<RunningServer | null> {
  try {
    await lockFolder(job.folder, stopping.signal)
    ftruncateSync(process.stdout.fd)
    const run = job.engine === 'redis' ? (await import('./redis.ts')).runRedis : (await import('./postgres.ts')).runPostgres
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
  const stopped = new Promise<void>(resolve => stopping.signal.addEventListener('abort', () => resolve()))
  if (!stopping.signal.aborted) {
    await report({ started })
    await Promise.race([stopped, ended])
  }
  try {
    await stop()
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
}

/** A caller that is gone needs no answer. */
function report(message: GuardianReport): Promise<void> {
  return new Promise(resolve => {
    if (!process.send || !process.connected) resolve()
    else process.send(message, undefined, {}, () => resolve())
  })
}
