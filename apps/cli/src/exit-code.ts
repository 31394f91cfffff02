/** The exit codes: how the work ended, or that the command line or the environment was wrong. */
import { hasEnded, type TaskStatus } from '@rivulet/client'
import { configurationExitCode } from '@rivulet/runtime/environment'

export const exitCodes = { completed: 0, failed: 1, usage: 2, configuration: configurationExitCode, canceled: 130 } as const

/** The command line asks for something that makes no sense. */
export class UsageError extends Error {}

/** A task that has not ended was left before its end. */
export function exitCodeOf(status: TaskStatus): number {
  return hasEnded(status) ? exitCodes[status] : exitCodes.failed
}
