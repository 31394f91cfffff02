/**
 * The times of a cron line in a time zone. A local time that does not exist, because clocks go forward, is the first minute after the gap; one that comes
 * twice counts once.
 */
import { type ErrorDetail, RivuletError } from '@rivulet/protocol'
import { Cron } from 'croner'

export type CronLine = { cron: string; timezone: string }

/** The first time after a moment; null when no such time exists. */
export function nextTime({ cron, timezone }: CronLine, after: Date): Date | null {
  return new Cron(cron, { timezone, paused: true, mode: '5-part' }).nextRun(after)
}

/** The last time up to a moment. */
export function lastTime(line: CronLine, first: Date, until: Date): Date {
  let last = first
  for (let next = nextTime(line, last); next && next <= until; next = nextTime(line, last)) last = next
  return last
}

/** Rejects a line that cannot be read, a line without any time, and an unknown zone, and names the field. */
export function requireCronLine({ cron, timezone }: CronLine): void {
  if (!isTimeZone(timezone)) throw invalid({ path: '/timezone', reason: 'Unknown time zone; use a name such as Europe/Berlin' })
  if (!hasTime(cron)) throw invalid({ path: '/cron', reason: `A cron line has five fields, such as "0 9 * * MON-FRI"; ${whyUnfit(cron)}` })
}

const fieldNames = ['minute', 'hour', 'day of the month', 'month', 'day of the week']

/** Without a word of the line: an error never repeats what a caller sent. */
function whyUnfit(cron: string): string {
  const fields = cron.trim().split(/\s+/)
  if (fields.length !== fieldNames.length) return `this one has ${fields.length}`
  const alone = (place: number) => fields.map((field, at) => (at === place ? field : '*')).join(' ')
  const unfit = fieldNames.filter((_, place) => !hasTime(alone(place)))
  return unfit.length > 0 ? `of this one, the ${unfit.join(' and the ')} cannot be read` : 'no time fits this one'
}

function hasTime(cron: string): boolean {
  try {
    return nextTime({ cron, timezone: 'UTC' }, new Date()) !== null
  } catch {
    return false
  }
}

function isTimeZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

function invalid(detail: ErrorDetail): RivuletError {
  return new RivuletError('validation_failed', 'Request validation failed', { details: [detail] })
}
