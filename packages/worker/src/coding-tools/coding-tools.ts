/**
 * The four tools of a coding agent in one folder: `read`, `write`, `edit` and `bash`.
 *
 * The first three reach no file outside the folder, also through links. `bash` begins in the folder with an empty environment, a time limit and a limit of
 * output; the operating system sets no other border, so a person approves each command, or the worker runs in a container.
 */
import { lstat, mkdir, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { defineTool, type Tool } from '@rivulet/agent'
import { z } from 'zod'
import { runCommand } from './run-command.ts'
import { readText, writeText } from './text-file.ts'

/** A result that is longer is cut, because a model has to read it. */
const maxChars = 30_000
const defaultTimeoutMs = 60_000

export type CodingTools = Record<'read' | 'write' | 'edit' | 'bash', Tool>

export type CodingToolsOptions = {
  /** How long a command may run. Default 60 s. */
  timeoutMs?: number
}

/** Creates the folder if it is not there. `Object.values` of the result are the tools of a run. */
export async function createCodingTools(folder: string, { timeoutMs = defaultTimeoutMs }: CodingToolsOptions = {}): Promise<CodingTools> {
  await mkdir(folder, { recursive: true })
  const root = await realpath(folder)
  const path = z.string().min(1).describe('A path in the folder')

  return {
    read: defineTool({
      name: 'read',
      description: 'Reads a file',
      input: z.object({ path }),
      run: async ({ path }, { signal }) => cut(await readText(await inside(path), { name: path, signal })),
    }),
    write: defineTool({
      name: 'write',
      description: 'Writes a file, and the folders that it needs',
      input: z.object({ path, content: z.string() }),
      run: async ({ path, content }, { signal }) => {
        const file = await inside(path)
        await mkdir(dirname(file), { recursive: true })
        await writeText(file, content, { name: path, signal })
        return `wrote ${content.length} characters to ${path}`
      },
    }),
    edit: defineTool({
      name: 'edit',
      description: 'Replaces a text that is in the file exactly once',
      input: z.object({ path, old: z.string().min(1), new: z.string() }),
      run: async ({ path, old, new: replacement }, { signal }) => {
        const file = await inside(path)
        const parts = (await readText(file, { name: path, signal })).split(old)
        if (parts.length !== 2) throw new Error(`The text is ${parts.length - 1} times in ${path}: it must be there once`)
        await writeText(file, parts.join(replacement), { name: path, signal })
        return `edited ${path}`
      },
    }),
    bash: defineTool({
      name: 'bash',
      description: 'Runs a command in the folder',
      input: z.object({ command: z.string().min(1) }),
      run: async ({ command }, { signal }) => {
        const { code, output } = await runCommand(command, { folder: root, timeoutMs, maxChars, signal })
        return { code, output: cut(output) }
      },
    }),
  }

  async function inside(path: string): Promise<string> {
    const real = await realOf(resolve(root, path))
    if (relative(root, real).split(sep)[0] === '..') throw new Error(`${path} is outside the folder`)
    return real
  }
}

/** Where a path leads that may not exist yet: a link may lead to a file that is not there, and a write would create it. */
async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (!isMissing(error)) throw error
    const folder = await realOf(dirname(path))
    const here = join(folder, basename(path))
    const target = await linkTarget(here)
    return target === null ? here : realOf(resolve(folder, target))
  }
}

async function linkTarget(path: string): Promise<string | null> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : null
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

function cut(text: string): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}\n… ${text.length - maxChars} more characters` : text
}
