/**
 * A unique name for a process: its pid and its start time.
 *
 * A pid alone is not unique, because the system reuses pids, and a restarted container reuses them at once.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessName = `${number}@${string}`

/** Null when there is no such process, or only a zombie. */
export function nameProcess(pid: number): ProcessName | null {
  const began = process.platform === 'linux' ? beganOnLinux(pid) : beganByPs(pid)
  return began === null ? null : `${pid}@${began}`
}

export function isAlive(name: ProcessName): boolean {
  return nameProcess(pidOf(name)) === name
}

export function pidOf(name: ProcessName): number {
  return Number.parseInt(name, 10)
}

/** The command line, or '' when it cannot be read. */
export function commandOf(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    return ps(pid, 'command=')
  } catch {
    return ''
  }
}

/** 0 when it cannot be read. */
export function parentOf(pid: number): number {
  try {
    return Number(process.platform === 'linux' ? statOf(pid)[1] : ps(pid, 'ppid='))
  } catch {
    return 0
  }
}

/** The processes whose command line begins with `command`. */
export function findProcesses(command: string): ProcessName[] {
  const pids = process.platform === 'linux' ? readdirSync('/proc').map(Number).filter(Number.isInteger) : pidsByPs()
  return pids.filter(pid => commandOf(pid).startsWith(command)).flatMap(pid => nameProcess(pid) ?? [])
}

function beganOnLinux(pid: number): string | null {
  try {
    const stat = statOf(pid)
    return stat[0] === 'Z' || stat[0] === 'X' ? null : (stat[19] ?? null)
  } catch {
    return null
  }
}

/** The fields of /proc/<pid>/stat from the third on: state, parent … The second is the program's name, which may contain blanks and brackets. */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function beganByPs(pid: number): string | null {
  try {
    const [state, ...began] = ps(pid, 'state=,lstart=').split(/\s+/)
    return state === undefined || state.startsWith('Z') ? null : began.join('_').replaceAll(':', '.')
  } catch {
    return null
  }
}

function pidsByPs(): number[] {
  return execFileSync('ps', ['-A', '-o', 'pid='], { encoding: 'utf8' }).trim().split(/\s+/).map(Number)
}

function ps(pid: number, columns: string): string {
  return execFileSync('ps', ['-o', columns, '-p', String(pid)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}
