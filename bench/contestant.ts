/** What is measured: servers that bring what tasks say to viewers over HTTP, as real processes. */
import type { ViewerRequest } from './crowd.ts'
import type { Plan } from './speech.ts'

/** Whose CPU it is: what serves the viewers, what speaks (where that is another process), and what lies between them. */
export type Role = 'server' | 'speaker' | 'redis' | 'postgres'

export type Contestant = {
  name: string
  /** Whether less is asked of it where only a rate is compared. */
  isSlow?: boolean
  pids: Partial<Record<Role, () => number[]>>
  prepare(plan: Plan): Promise<Prepared>
  close(): Promise<void>
}

/** Tasks that are there and silent. */
export type Prepared = {
  /** How each of them is watched, from its first delta on. */
  requests: ViewerRequest[]
  /** How the first of them is watched by somebody who needs its state and not its history, where there is such a way. */
  snapshot?: ViewerRequest | undefined
  /** They speak; resolves when everything is said. */
  speak(): Promise<void>
  /** They are over; what they left is removed as far as it would weigh on later runs. */
  clear(): Promise<void>
}

/** A contestant that is not here, and why. */
export type Absent = { name: string; because: string }

export type Start = { name: string; start(world: World): Promise<Contestant | Absent> }

/** What all of them share. */
export type World = {
  redisUrl: string
  redisPid: number | null
  databaseUrl: string
  postgresPid: number | null
  folder: string
  /** Where API and worker leave their CPU profiles, if they are to have any. */
  profiles: string | null
}

export function isAbsent(contestant: Contestant | Absent): contestant is Absent {
  return 'because' in contestant
}
