/** Finds programs on a PATH and reads their version. A program that cannot run is ignored. */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'

export type Program = { file: string; version: string; major: number }

/** Every program of that name, in the order of the PATH. Relative entries are ignored, because their meaning depends on the current folder. */
export async function findPrograms(name: string, path: string): Promise<Program[]> {
  const folders = [...new Set(path.split(delimiter))].filter(isAbsolute)
  const found = await Promise.all(folders.map(folder => describeProgram(join(folder, name))))
  return found.filter(program => program !== null)
}

async function describeProgram(file: string): Promise<Program | null> {
  try {
    await access(file, constants.X_OK)
    const { stdout } = await promisify(execFile)(file, ['--version'], { timeout: 10_000, cwd: '/' })
    const version = stdout.match(/\d+(?:\.\d+)?/)?.[0]
    return version === undefined ? null : { file, version, major: Number.parseInt(version, 10) }
  } catch {
    return null
  }
}
