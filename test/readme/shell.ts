/** Types what a document shows: commands that give an answer. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { commandsOf } from '../rules/documented-commands.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Where the documents say that the API is. */
const documentedUrl = 'http://127.0.0.1:4000'

export const hasCurl = spawnSync('curl', ['--version']).status === 0

export function shownIn(document: string): string[] {
  return commandsOf(readFileSync(root + document, 'utf8'))
}

/** What each of these commands writes, typed one after the other against the API at `url`. */
export async function repliesOf(commands: readonly string[], url: string): Promise<string[]> {
  const mark = '\n=====\n'
  const script = commands.map(command => `${command.replaceAll(documentedUrl, url)}\nprintf '${mark.replaceAll('\n', '\\n')}'`).join('\n')
  const env = { ...process.env, RIVULET_URL: url }
  const child = spawn('bash', ['-c', script], { cwd: root, env, stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', text => (output += text))
  const [status] = await once(child, 'close')
  expect(status).toBe(0)
  return output.split(mark).slice(0, -1)
}
