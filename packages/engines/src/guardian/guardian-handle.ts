/**
 * The caller's side of a guardian: the child process that locks a data folder and keeps one server running in it.
 *
 * The guardian ends its server when the channel between the two closes. `stop` closes it, and the kernel closes it when the caller dies, so a
 * stop and a crash take the same path.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, appendFileSync, closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Engine } from '../engine.ts'
import { makePrivateFolder } from '../private-folder.ts'

export type GuardedEngine = 'redis' | 'postgres'

/** Runs TypeScript. Looked for only where it is needed, because an image has no packages. Not import.meta.resolve, because vitest does not provide it. */
export function typeScriptLoader(): string {
  return pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
}

/** The only argument of a guardian. */
export type GuardianJob = {
  engine: GuardedEngine
  folder: string
  port: number
  prefer: 'native' | 'embedded'
  path: string
}

/** The one message that a guardian sends. */
export type GuardianReport = { started: StartedEngine } | { failed: string }
export type StartedEngine = {
  url: string
  kind: 'native' | 'embedded'
  /** Program and version, for people. */
  name: string
  dataFolder: string
  pid: number
}

export async function startGuardian(job: GuardianJob): Promise<Engine> {
  prepareFolder(job.folder)
  const child = spawnGuardian(job)
  let isStopping = false
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  const report = await new Promise<GuardianReport>(resolve => {
    child.once('message', message => resolve(message as GuardianReport))
    child.once('error', error => resolve({ failed: `Cannot start ${process.execPath}: ${error.message}` }))
    ended.then(code => resolve({ failed: `The guardian of ${job.folder} ended with ${code}, see ${logOf(job.folder)}` }))
  })
  if ('failed' in report) throw new Error(report.failed)

  // The guardian does not keep its caller alive; the server ends with the caller.
  child.unref()
  child.channel?.unref()
  const { url, kind, name, dataFolder, pid } = report.started
  const lost = new Promise<string>(resolve => void ended.then(() => isStopping || resolve(describeLoss(job.folder, child))))
  return { url, kind, description: `${name}, data in ${fromHere(dataFolder)}`, pid, lost, stop }

  async function stop(): Promise<void> {
    isStopping = true
    child.ref()
    if (child.connected) child.disconnect()
    const code = child.exitCode ?? (await ended)
    if (code !== 0 && child.signalCode === null) throw new Error(`${job.engine} did not stop cleanly, see ${logOf(job.folder)}`)
  }
}

function spawnGuardian(job: GuardianJob): ChildProcess {
  const log = openSync(logOf(job.folder), 'a', 0o600)
  try {
    const source = fileURLToPath(new URL('./guardian.ts', import.meta.url))
    // The published package has the guardian as a bundle in the same place.
    const program = existsSync(source) ? ['--import', typeScriptLoader(), source] : [source.replace(/\.ts$/, '.mjs')]
    // Detached into its own session, so that Ctrl-C in the terminal reaches only the caller, which stops its engines last.
    return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...program, JSON.stringify(job)], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    })
  } finally {
    closeSync(log)
  }
}

/** Describes an end without `stop`. A guardian that was killed could not log the reason, so the caller does. */
function describeLoss(folder: string, { pid, exitCode, signalCode }: ChildProcess): string {
  const log = logOf(folder)
  try {
    if (signalCode) appendFileSync(log, `${new Date().toISOString()} caller ${process.pid}: guardian ${pid} ended by ${signalCode}\n`)
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-10)
    return `its guardian ended (${signalCode ?? exitCode}); the end of ${log}:\n${lines.map(line => `  ${line}`).join('\n')}`
  } catch {
    return `its guardian ended (${signalCode ?? exitCode}), and ${log} is gone`
  }
}

function prepareFolder(folder: string): void {
  try {
    makePrivateFolder(folder)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = error instanceof Error ? error.message.split(', ')[0] : String(error)
    throw new Error(`Cannot write to the data folder ${folder} (${reason})`, { cause: error })
  }
}

export function logOf(folder: string): string {
  return join(folder, 'server.log')
}

function fromHere(folder: string): string {
  const path = relative(process.cwd(), folder)
  return path.startsWith('..') ? folder : path
}
