/** The status of a task or a turn in a list; for one that is delayed, when it starts. */
import { formatDuration } from '../terminal/duration.ts'

export function statusText({ status, dueAt }: { status: string; dueAt: string | undefined }, now: number): string {
  return dueAt && status === 'queued' ? `starts in ${formatDuration(Date.parse(dueAt) - now)}` : status
}
