/**
 * A native server as a child of its guardian.
 *
 * The guardian writes the child's name to the data folder (`server`, a symbolic link) as soon as it exists. When the guardian is killed, the
 * next one finds that name and, if the process still lives, ends it. So a folder never has two servers, and a server never two guardians.
 */
import { spawn } from 'node:child_process'
import { readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { logOf, type StartedEngine } from './guardian-handle.ts'
import { isAlive, nameProcess, type ProcessName, pidOf } from './process-name.ts'

/** The whole environment of a server: it gets neither the settings nor the secrets of this process. */
export const serverEnvironment = { LC_ALL: 'C', TZ: 'UTC' }

export type RunningServer = StartedEngine & {
  /** Resolves with the exit code, signal or error when the server has ended. */
  ended: Promise<string>
  stop(): Promise<void>
}

export type ServerProcess = { pid: number; folder: string; file: string; ended: Promise<string>; stop(): Promise<void> }

type ServerCommand = {
  folder: string
  file: string
  args: string[]
  /** What it reads on stdin. */
  input?: string
  /** The signal by which this server ends in order. */
  stopSignal: NodeJS.Signals
  user?: { uid: number; gid: number } | undefined
}

export function spawnServer({ folder, file, args, input = '', stopSignal, user }: ServerCommand): ServerProcess {
  const child = spawn(file, args, { cwd: '/', env: serverEnvironment, stdio: ['pipe', 'inherit', 'inherit'], ...user })
  child.once('error', error => console.error(error))
  // Ignore write errors, because a server that exits before it has read stdin is reported by its exit.
  child.stdin.on('error', () => {}).end(input)
  const ended = new Promise<string>(resolve => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    child.once('error', error => resolve(error.message))
  })
  const name = child.pid === undefined ? null : nameProcess(child.pid)
  if (child.pid !== undefined && name !== null) writeName(folder, name)
  return { pid: child.pid ?? 0, folder, file, ended, stop }

  async function stop(): Promise<void> {
    if (name !== null) await endProcess(name, stopSignal)
  }
}

/** Waits until the server is ready. Throws its last log line when it ends first; stops it when the signal fires. */
export async function waitUntilReady(server: ServerProcess, isReady: () => boolean, signal: AbortSignal): Promise<void> {
  let hasEnded = false
  server.ended.then(() => {
    hasEnded = true
  })
  while (!isReady()) {
    if (hasEnded) throw new Error(`${server.file} ended while starting: ${lastError(server.folder)}`)
    if (signal.aborted) {
      await server.stop()
      signal.throwIfAborted()
    }
    await delay(10)
  }
}

export async function endLeftover(folder: string, stopSignal: NodeJS.Signals): Promise<void> {
  const name = readName(folder)
  if (name) await endProcess(name, stopSignal)
}

/** Sends the server's own stop signal, and SIGKILL when the process does not end in time. */
export async function endProcess(name: ProcessName, stopSignal: NodeJS.Signals): Promise<void> {
  for (const [signal, patienceMs] of [[stopSignal, 20_000] as const, ['SIGKILL', 5_000] as const]) {
    if (!isAlive(name)) return
    sendSignal(name, signal)
    const deadline = Date.now() + patienceMs
    while (isAlive(name) && Date.now() < deadline) await delay(10)
  }
  if (isAlive(name)) throw new Error(`Process ${pidOf(name)} did not end after SIGKILL`)
}

function sendSignal(name: ProcessName, signal: NodeJS.Signals): void {
  try {
    process.kill(pidOf(name), signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function writeName(folder: string, name: ProcessName): void {
  rmSync(join(folder, 'server'), { force: true })
  symlinkSync(name, join(folder, 'server'))
}

function readName(folder: string): ProcessName | null {
  try {
    return readlinkSync(join(folder, 'server')) as ProcessName
  } catch {
    return null
  }
}

/** The latest line of the server's log that looks like an error, else the last line. */
function lastError(folder: string): string {
  const lines = readFileSync(logOf(folder), 'utf8')
    .split('\n')
    .filter(line => line.trim() !== '')
  return lines.findLast(line => /FATAL|PANIC|ERROR|# /i.test(line)) ?? lines.at(-1) ?? 'its log is empty'
}
