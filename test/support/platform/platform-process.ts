/** One program of the platform as a child process: its output is kept, line by line, and it can be killed, frozen and woken. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { bundlePrograms, entries, type Program } from '../../../scripts/bundle.ts'
import { toSources } from '../process/source-places.ts'
import { until } from '../until.ts'

export type LogLine = { level: number; msg: string; [field: string]: unknown }

type Exit = { code: number | null; signal: NodeJS.Signals | null }

export type PlatformProcess = {
  name: string
  pid: number
  /** Everything it wrote; a line that is not JSON has level 0. */
  lines: LogLine[]
  /** The first line that says this, also in the future. Fails when the process ends before it. */
  said(message: string): Promise<LogLine>
  hasExited(): boolean
  exited: Promise<Exit>
  /** Resolves when it is gone. Default SIGKILL. */
  kill(signal?: NodeJS.Signals): Promise<Exit>
  freeze(): void
  wake(): void
}

const checkout = fileURLToPath(new URL('../../..', import.meta.url))
const cachedProgram = fileURLToPath(new URL('../process/cached-program.cjs', import.meta.url))

/** Sources that are not this checkout, and the file that handles their failpoints. */
export type Tree = { root: string; failpoints: string }

/** A folder in which packages are installed, and the arguments of Node for each program. */
export type Installation = { folder: string; programs: Record<Program, string[]> }

/** `from`: whose programs are run; those of a tree are bundled. Default: this checkout. */
export function startProcess(
  program: Program,
  name: string,
  environment: Record<string, string>,
  from?: Tree | Installation,
): PlatformProcess {
  const isInstalled = from !== undefined && 'programs' in from
  const child: ChildProcess = spawn(process.execPath, isInstalled ? from.programs[program] : argumentsFor(program, environment, from), {
    cwd: isInstalled ? from.folder : undefined,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: LogLine[] = []
  for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on('line', keep)
  let exit: Exit | null = null
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', settle)
    // A process of a turn's own outlives the worker that was killed, and holds its output open: what the worker itself wrote is read by then.
    child.once('exit', (code, signal) => {
      if (signal === 'SIGKILL') setTimeout(settle, 500, code, signal)
    })

    function settle(code: number | null, signal: NodeJS.Signals | null): void {
      exit ??= { code, signal }
      resolve(exit)
    }
  })
  return {
    name,
    pid: child.pid ?? 0,
    lines,
    said,
    hasExited: () => exit !== null,
    exited,
    kill(signal = 'SIGKILL') {
      child.kill(signal)
      // A stopped process cannot act on a signal before it goes on.
      if (signal !== 'SIGKILL') child.kill('SIGCONT')
      return exited
    },
    freeze: () => void child.kill('SIGSTOP'),
    wake: () => void child.kill('SIGCONT'),
  }

  function said(message: string): Promise<LogLine> {
    return until(`${name} says "${message}"`, () => {
      const line = lines.find(({ msg }) => msg === message)
      if (!line && exit) throw new Error(`${name} ended (${exit.signal ?? exit.code}) before it said "${message}":\n${tail(lines)}`)
      return line
    })
  }

  function keep(text: string): void {
    lines.push(parse(text))
  }
}

/** The program as one file, unless it is to load agents out of TypeScript: then all of it is loaded as they are. Plain JavaScript it loads by itself. */
function argumentsFor(program: Program, { AGENT_FILES: agentFiles }: Record<string, string>, tree: Tree | undefined): string[] {
  const imports = [import.meta.resolve('tsx'), ...(tree ? [tree.failpoints] : [])].flatMap(file => ['--import', file])
  if (agentFiles?.endsWith('.ts')) return [...imports, join(tree?.root ?? checkout, entries[program])]
  const { folder, whyNot } = tree ? { folder: bundleFolder(tree), whyNot: null } : inject('programs')
  if (whyNot) throw new Error(whyNot)
  const bundle = join(folder, program, 'main.cjs')
  // In Node 20, a script with stored code cannot import a module.
  return agentFiles ? [bundle] : [cachedProgram, bundle]
}

/** Once, before the first process of the tree is started. */
export async function bundleTree(tree: Tree): Promise<void> {
  await bundlePrograms({ ...tree, out: bundleFolder(tree), format: 'cjs' })
}

function bundleFolder({ root }: Tree): string {
  return join(root, 'dist')
}

/** The end of what a process wrote, for people. */
export function tail(lines: readonly LogLine[], count = 60): string {
  return lines
    .slice(-count)
    .map(({ time, level, pid: _, hostname: __, msg, ...fields }) => {
      const at = typeof time === 'number' ? new Date(time).toISOString().slice(11, 23) : ''
      return toSources(`  ${at} ${level} ${msg} ${Object.keys(fields).length > 0 ? JSON.stringify(fields) : ''}`).slice(0, 1_500)
    })
    .join('\n')
}

function parse(text: string): LogLine {
  try {
    const line: unknown = JSON.parse(text)
    if (typeof line === 'object' && line !== null && 'msg' in line) return line as LogLine
  } catch {
    // Not a log line: a crash, or something that does not use the logger.
  }
  return { level: 0, msg: text }
}
