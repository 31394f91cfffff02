/**
 * The command line at a terminal, and in a script.
 *
 * `runCli` runs a command without a terminal and waits for its end: in the test's own process, unless the command starts others or depends on its
 * folder. `openTerminal` gives it a pseudo-terminal, in which it believes that a person looks on.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Context, createPen, type Pen, runCommand } from 'rivulet/run-command'
import { inject } from 'vitest'
import { until } from './until.ts'

export const cli = fileURLToPath(new URL('../../apps/cli/bin/rivulet.mjs', import.meta.url))

/** Commands that start other processes, or need the checkout around them. The others are run from one file, because it is loaded in a fifth of the time. */
const starters = new Set(['start', 'dev', 'worker', 'init', 'build', 'conform', 'doctor', 'migrate'])

/** The arguments for Node that run this command line. */
export function cliArguments(args: readonly string[]): string[] {
  const { folder, whyNot } = inject('programs')
  return [starters.has(args[0] ?? '') || whyNot ? cli : join(folder, 'cli/main.mjs'), ...args]
}

export type CliResult = { code: number | null; stdout: string; stderr: string }

type CliOptions = { env?: Record<string, string>; cwd?: string; input?: string }

export function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const needsProcess = starters.has(args[0] ?? '') || options.cwd !== undefined
  return needsProcess ? runProcess(args, options) : runHere(args, options)
}

async function runHere(args: readonly string[], { env = {}, input = '' }: CliOptions): Promise<CliResult> {
  const environment = plainEnvironment(env)
  const result: CliResult = { code: 0, stdout: '', stderr: '' }
  const context: Context = {
    ...{ environment, out: penOf('stdout'), err: penOf('stderr') },
    readInput: async () => input,
    prompt: async () => null,
    onLine: () => () => {},
    onInterrupt: () => () => {},
    onStop: () => {},
    exitWith: code => {
      result.code = code
    },
  }
  await runCommand(context, args, '0.0.0')
  return result

  function penOf(name: 'stdout' | 'stderr'): Pen {
    const write = (text: string) => {
      result[name] += text
    }
    return createPen({ write }, environment)
  }
}

async function runProcess(args: readonly string[], { env = {}, cwd, input }: CliOptions): Promise<CliResult> {
  const child = spawn(process.execPath, cliArguments(args), { cwd, env: plainEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] })
  const result: CliResult = { code: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    result.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    result.stderr += text
  })
  child.stdin.on('error', () => {}).end(input ?? '')
  result.code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  return result
}

export type TestTerminal = {
  /** Everything that was written to the screen, escape sequences included. */
  output(): string
  /** The pieces in which it came. */
  pieces: string[]
  type(text: string): void
  untilShows(text: string | RegExp): Promise<void>
  exited: Promise<number>
  kill(): void
}

type NodePty = typeof import('@lydell/node-pty')

/** Null on machines for which no native part of node-pty is there. */
export async function loadPty(): Promise<NodePty | null> {
  try {
    const pty = await import('@lydell/node-pty')
    // The native part is loaded with the first process.
    const probe = pty.spawn(process.execPath, ['--version'], {})
    await new Promise(resolve => probe.onExit(resolve))
    return pty
  } catch {
    return null
  }
}

export type TerminalOptions = Omit<CliOptions, 'input'> & {
  /** Default 100. */
  columns?: number
}

export function openTerminal(pty: NodePty, args: readonly string[], { env = {}, cwd, columns = 100 }: TerminalOptions = {}): TestTerminal {
  const child = pty.spawn(process.execPath, cliArguments(args), {
    ...{ name: 'xterm-256color', cols: columns, rows: 30 },
    ...(cwd !== undefined && { cwd }),
    env: plainEnvironment(env),
  })
  const pieces: string[] = []
  let code: number | null = null
  child.onData(piece => void pieces.push(piece))
  const exited = new Promise<number>(resolve => {
    child.onExit(({ exitCode }) => {
      code = exitCode
      resolve(exitCode)
    })
  })
  return {
    output,
    pieces,
    type: text => child.write(text),
    untilShows,
    exited,
    kill: () => (code === null ? child.kill('SIGKILL') : undefined),
  }

  function output(): string {
    return pieces.join('')
  }

  async function untilShows(text: string | RegExp): Promise<void> {
    await until(`the terminal shows ${text}`, () => {
      if (typeof text === 'string' ? output().includes(text) : text.test(output())) return true
      if (code !== null) throw new Error(`It ended with ${code} before it showed ${text}:\n${output()}`)
      return false
    })
  }
}

/** Without what the test runner or the machine says about color, and about a platform that happens to run. */
export function plainEnvironment(env: Record<string, string>): Record<string, string> {
  const left = Object.entries(process.env).filter(
    ([name]) => !/^(FORCE_COLOR|NO_COLOR|CI|TERM|RIVULET_URL|RIVULET_KEY|REDIS_URL|DATABASE_URL|npm_.*)$/.test(name),
  )
  return {
    ...Object.fromEntries(left.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    TERM: 'xterm-256color',
    ...env,
  }
}
