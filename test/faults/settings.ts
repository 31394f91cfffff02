/** The options of the bench on demand, passed in the environment because vitest accepts no arguments of ours. */
import { z } from 'zod'

const number = z.coerce.number().int().min(0)

const schema = z.object({
  FAULTS_SEED: number.default(1),
  FAULTS_RUNS: number.default(1),
  FAULTS_SOAK: z.coerce.number().min(0).default(0),
  FAULTS_UPGRADE: z.string().default(''),
})

export type Settings = {
  seed: number
  runs: number
  soakMinutes: number
  /** The tag or commit of the version before; empty for the default. */
  upgradeFrom: string
}

export function readSettings(environment: Record<string, string | undefined>): Settings {
  const { FAULTS_SEED, FAULTS_RUNS, FAULTS_SOAK, FAULTS_UPGRADE } = schema.parse(environment)
  return { seed: FAULTS_SEED, runs: FAULTS_RUNS, soakMinutes: FAULTS_SOAK, upgradeFrom: FAULTS_UPGRADE }
}

export function toEnvironment({ seed, runs, soakMinutes, upgradeFrom }: Settings): Record<string, string> {
  return { FAULTS_SEED: String(seed), FAULTS_RUNS: String(runs), FAULTS_SOAK: String(soakMinutes), FAULTS_UPGRADE: upgradeFrom }
}
