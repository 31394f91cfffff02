/** CPU time and memory of processes, by process id, children included. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, which is 100 on every Linux. */
const ticksPerSecond = 100

const hasProc = existsSync('/proc/self/stat')

/** Seconds of CPU time, user and system, of each process and of its children that have ended: a family that loses a member does not lose its time. */
export function cpuSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (hasProc ? procSeconds(pid) + endedSeconds(pid) : psSeconds(pid)), 0)
}

/** A process and all its living descendants. */
export function familyOf(pid: number): number[] {
  const parents = hasProc ? procParents() : psParents()
  const family = [pid]
  for (const member of family) for (const [child, parent] of parents) if (parent === member) family.push(child)
  return family
}

export function residentBytes(pid: number): number {
  if (!hasProc) return Number(ps('rss=', pid)) * 1_024
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1_024
}

/** From the scheduler's statistics in nanoseconds per thread, where available; else in hundredths of a second. */
function procSeconds(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    const nanoseconds = threads.map(thread => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]))
    return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e9
  } catch {
    return tickedSeconds(pid)
  }
}

function tickedSeconds(pid: number): number {
  const fields = statOf(pid)
  return fields ? (Number(fields[11]) + Number(fields[12])) / ticksPerSecond : 0
}

/** Of the children that a process has waited for. */
function endedSeconds(pid: number): number {
  const fields = statOf(pid)
  return fields ? (Number(fields[13]) + Number(fields[14])) / ticksPerSecond : 0
}

function procParents(): Map<number, number> {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return new Map(pids.map(pid => [Number(pid), Number(statOf(Number(pid))?.[1] ?? 0)]))
}

/** The fields after the program's name, which may contain any character. Null for a process that has ended. */
function statOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}

/** `1:02.34` or `1:02:03`. */
function psSeconds(pid: number): number {
  const parts = ps('time=', pid).split(':')
  return parts.reduce((seconds, part) => seconds * 60 + Number(part), 0)
}

function psParents(): Map<number, number> {
  const lines = execFileSync('ps', ['-axo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  return new Map(lines.map(line => line.trim().split(/\s+/).map(Number) as [number, number]))
}

function ps(column: string, pid: number): string {
  return execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).trim()
}
