/**
 * The file in the data folder that records where a platform runs, so that other commands of the same user find it. It is valid while the process
 * that wrote it lives. Only its owner can read it, because its URLs contain passwords and it holds the workers' key.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const noteSchema = z.object({
  ...{ pid: z.int(), url: z.string(), redisUrl: z.string() },
  ...{ databaseUrl: z.string().optional(), workerKey: z.string().optional() },
})

type RunningNote = z.output<typeof noteSchema>

/** A folder that cannot be written to has no embedded engines either, and is no reason not to run. */
export function noteRunning(dataDir: string, note: RunningNote): void {
  try {
    mkdirSync(dataDir, { recursive: true })
    // A new file each time: one that is there may be open to others.
    const unfinished = `${fileIn(dataDir)}.${process.pid}`
    rmSync(unfinished, { force: true })
    writeFileSync(unfinished, JSON.stringify(note), { mode: 0o600, flag: 'wx' })
    renameSync(unfinished, fileIn(dataDir))
  } catch {
    // Then a worker has to be told.
  }
}

/** Another platform on servers of one's own may have written its note over this one's. */
export function forgetRunning(dataDir: string, pid: number): void {
  if (findRunning(dataDir)?.pid === pid) rmSync(fileIn(dataDir), { force: true })
}

export function findRunning(dataDir: string): RunningNote | null {
  try {
    const note = noteSchema.parse(JSON.parse(readFileSync(fileIn(dataDir), 'utf8')))
    process.kill(note.pid, 0)
    return note
  } catch {
    return null
  }
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'running.json')
}
