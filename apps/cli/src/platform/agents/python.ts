/** Agents in Python: which files have them, the Python that runs them, and the package that it finds them with. */
import { execFile } from 'node:child_process'
import { delimiter } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../programs.ts'

/** In a checkout, and in the published package. */
const packageFolder = `${root}sdks/python/src`
const leastVersion = [3, 10]

export const isPython = (file: string): boolean => file.endsWith('.py')

type AgentFiles = { python: readonly string[]; node: readonly string[] }

export function byLanguage(files: readonly string[]): AgentFiles {
  return { python: files.filter(isPython), node: files.filter(file => !isPython(file)) }
}

/** What starts a worker with the agents of these files, which ends when its stdin is closed. */
export function pythonWorker(files: readonly string[], environment: Record<string, string | undefined>) {
  const path = [packageFolder, ...(environment.PYTHONPATH ? [environment.PYTHONPATH] : [])].join(delimiter)
  return {
    command: 'python3',
    args: ['-m', 'rivulet', '--stop-with-stdin', ...files],
    // What an agent prints is shown at once.
    environment: { ...environment, PYTHONPATH: path, PYTHONUNBUFFERED: '1' },
  }
}

/** Rejects with a sentence if there is no Python that can run agents. */
export async function findPython(): Promise<string> {
  const script = 'import platform, sys; print(platform.python_version(), sys.executable)'
  const needed = leastVersion.join('.')
  const found = await promisify(execFile)('python3', ['-c', script]).catch(() => null)
  if (!found) throw new Error(`no python3; agents in Python need ${needed} or newer`)
  const [version = '', executable = ''] = found.stdout.trim().split(' ')
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < 3 || (major === 3 && minor < 10))
    throw new Error(`Python ${version} at ${executable}; agents in Python need ${needed} or newer`)
  return `Python ${version} at ${executable}`
}

/** Before anything is started for files that could not run. */
export async function requirePythonFor(files: readonly string[]): Promise<void> {
  if (files.some(isPython)) await findPython()
}
