/** What is wrong with what an API process wrote while it was sent rubbish: a crash, an error of ours, or the rubbish itself. */
import type { LogLine } from '../platform/platform-process.ts'
import { marker } from './spoiling.ts'

const error = 50

export function faultsInLines(lines: readonly LogLine[]): string[] {
  return lines.flatMap(line => {
    const { level, msg } = line
    // What a worker says of its own work is said to operators: why an attempt failed, which step it was, who it is.
    const { error: _, step: __, worker: ___, ...said } = line
    if (level === 0) return [`It wrote what is no line of a log: ${msg}`]
    if (msg === 'a required database is unavailable') return [`It took a client for a database: ${JSON.stringify(line).slice(0, 3_000)}`]
    if (level >= error) return [`It logged an error: ${JSON.stringify(line).slice(0, 3_000)}`]
    return JSON.stringify(said).toLowerCase().includes(marker)
      ? [`It logged what it was sent: ${JSON.stringify(line).slice(0, 1_000)}`]
      : []
  })
}
