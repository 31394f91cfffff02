/** The contestants: servers that stream the deltas of tasks to viewers over HTTP, as real processes. */
import type { ViewerRequest } from './crowd.ts'
import type { Plan } from './measure/speech.ts'

/** The role whose CPU is measured: the server of the viewers, the process that runs the agents (if it is another one), Redis, Postgres. */
export type Role = 'server' | 'speaker' | 'redis' | 'postgres'

export type Contestant = {
  name: string
  /** Gets a smaller load in workloads that compare only rates. */
  isSlow?: boolean
  /** More tasks than these would wait for others to end. Default: no limit. */
  mostTasks?: number
  pids: Partial<Record<Role, () => number[]>>
  prepare(plan: Plan): Promise<Prepared>
  /** Creates the tasks, 50 requests at a time, and resolves when all have ended and are stored. Absent where nothing accepts tasks. */
  runWhole?(plan: Plan): Promise<void>
  close(): Promise<void>
}

/** Tasks that exist and have sent nothing yet. */
export type Prepared = {
  /** The viewer's request for each task, from its first delta on. */
  requests: ViewerRequest[]
  /** The request for the first task's current state instead of its history, if the contestant offers that. */
  snapshot?: ViewerRequest | undefined
  /** The request for all tasks on one stream, if the contestant offers that. */
  together?(): ViewerRequest
  /** Starts the tasks; resolves when every delta was sent. */
  speak(): Promise<void>
  /** Ends the tasks, and removes what would slow later runs. */
  clear(): Promise<void>
}

/** A contestant that cannot be measured, and why. */
export type Absent = { name: string; because: string }

export type Start = { name: string; start(world: World): Promise<Contestant | Absent> }

/** What all contestants share. */
export type World = {
  redisUrl: string
  redisPid: number | null
  databaseUrl: string
  postgresPid: number | null
  folder: string
  /** The folder for the CPU profiles of API and worker; null without profiling. */
  profiles: string | null
}

export function isAbsent(contestant: Contestant | Absent): contestant is Absent {
  return 'because' in contestant
}
