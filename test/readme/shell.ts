/** Types what a document shows: commands that go on until they are interrupted, and commands that give an answer. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { commandsOf } from '../rules/documented-commands.ts'
import { until } from '../support/until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Where the documents say that the API is. */
const documentedUrl = 'http://127.0.0.1:4000'

export const hasCurl = spawnSync('curl', ['--version']).status === 0

export type RunningCommand = {
  output(): string
  /** Resolves when it has written this; fails when it ends before. */
  says(text: string): Promise<void>
  /** Sends what Ctrl-C sends, and resolves when it is gone. */
  interrupt(): Promise<void>
}

export function shownIn(document: string): string[] {
  return commandsOf(readFileSync(root + document, 'utf8'))
}

/** In the root of the repository, as a newcomer types it, or in a folder inside it. */
export function startCommand(command: string, env: Record<string, string>, folder = root): RunningCommand {
  // Its own group, so that the whole of it can be sent what Ctrl-C sends.
  const child = spawn('bash', ['-c', command], {
    cwd: folder,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => (output += bytes))
  return { output: () => output, says, interrupt }

  async function says(text: string): Promise<void> {
    await until(
      `"${command}" writes "${text}"`,
      () => {
        if (output.includes(text)) return true
        if (child.exitCode !== null) throw new Error(`"${command}" ended (${child.exitCode}):\n${output}`)
        return false
      },
      { timeoutMs: 120_000 },
    )
  }

  async function interrupt(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
    await exited
  }
}

/** What each of these commands writes, typed one after the other against the API at `url`. */
export async function repliesOf(commands: readonly string[], url: string): Promise<string[]> {
  const mark = '\n=====\n'
  const script = commands.map(command => `${command.replaceAll(documentedUrl, url)}\nprintf '${mark.replaceAll('\n', '\\n')}'`).join('\n')
  const env = { ...process.env, RIVULET_URL: url }
  const child = spawn('bash', ['-c', script], { cwd: root, env, stdio: ['ignore', 'pipe', 'ignore'], timeout: 280_000 })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', text => (output += text))
  const [status] = await once(child, 'close')
  expect(status).toBe(0)
  return output.split(mark).slice(0, -1)
}
