/**
 * The folder of one task, and the four tools of a coding agent in it. `read`, `write` and `edit` reach no file outside the folder, also through links.
 * `bash` begins in the folder with an empty environment, a time limit and a limit of output; the operating system sets no other border, so a person approves
 * each command, or the worker runs in a container.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { defineTool, type Tool } from '@rivulet/agent'
import { z } from 'zod'

const maxChars = 30_000
const commandMs = 60_000

export async function createCodingTools(folder: string): Promise<Tool[]> {
  await mkdir(folder, { recursive: true })
  const root = await realpath(folder)
  const path = z.string().min(1).describe('A path in the folder')

  return [
    defineTool({
      name: 'read',
      description: 'Reads a file',
      input: z.object({ path }),
      run: async ({ path }) => cut(await readFile(await inside(path), 'utf8')),
    }),
    defineTool({
      name: 'write',
      description: 'Writes a file, and the folders that it needs',
      input: z.object({ path, content: z.string() }),
      run: async ({ path, content }) => {
        const file = await inside(path)
        await mkdir(dirname(file), { recursive: true })
        await writeFile(file, content)
        return `wrote ${content.length} characters to ${path}`
      },
    }),
    defineTool({
      name: 'edit',
      description: 'Replaces a text that is in the file exactly once',
      input: z.object({ path, old: z.string().min(1), new: z.string() }),
      run: async ({ path, old, new: replacement }) => {
        const file = await inside(path)
        const parts = (await readFile(file, 'utf8')).split(old)
        if (parts.length !== 2) throw new Error(`The text is ${parts.length - 1} times in ${path}: it must be there once`)
        await writeFile(file, parts.join(replacement))
        return `edited ${path}`
      },
    }),
    defineTool({
      name: 'bash',
      description: 'Runs a command in the folder',
      input: z.object({ command: z.string().min(1) }),
      run: ({ command }, { signal }) => runCommand(command, signal),
    }),
  ]

  /** A path may not exist yet, so its nearest folder that does is checked. */
  async function inside(path: string): Promise<string> {
    const wanted = resolve(root, path)
    const real = await realOf(wanted)
    if (relative(root, real).split('/')[0] === '..') throw new Error(`${path} is outside the folder`)
    return real
  }

  function runCommand(command: string, signal: AbortSignal): Promise<{ code: number; output: string }> {
    const options = { cwd: root, env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: root }, timeout: commandMs, signal }
    return new Promise((resolve, reject) =>
      execFile('/bin/sh', ['-c', command], options, (error, stdout, stderr) => {
        const code = error && typeof error.code === 'number' ? error.code : error ? null : 0
        if (code === null) reject(error)
        else resolve({ code, output: cut(`${stdout}${stderr}`) })
      }),
    )
  }
}

async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    return join(await realOf(dirname(path)), path.slice(dirname(path).length))
  }
}

function cut(text: string): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}\n… ${text.length - maxChars} more characters` : text
}
