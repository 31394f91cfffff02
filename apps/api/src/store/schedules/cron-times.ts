/**
 * The times of a cron line in a time zone. A local time that does not exist, because clocks go forward, is the first minute after the gap; one that comes
 * twice counts once.
 */
import { type ErrorDetail, RivuletError } from '@rivulet/protocol'
import { Cron } from 'croner'

export type CronLine = { cron: string; timezone: string }

/** The first time after a moment; null when no such time exists. */
export function nextTime(line: CronLine, after: Date): Date | null {
  return parseLine(line).nextRun(after)
}

function parseLine({ cron, timezone }: CronLine): Cron {
  return new Cron(cron, { timezone, paused: true, mode: '5-part' })
}

/**
 * The last time up to a moment, from the first on. Each step halves the time in which it may be, because a line of every minute has too many times to
 * step through.
 */
export function lastTime(line: CronLine, first: Date, until: Date): Date {
  const timeAfter = (ms: number) => {
    const next = nextTime(line, new Date(ms))
    return next && next <= until ? next.getTime() : null
  }
  let last = timeAfter(first.getTime())
  if (last === null) return first
  let end = until.getTime()
  while (end - last >= shortestMs) {
    const middle: number = last + Math.floor((end - last) / 2)
    const later: number | null = timeAfter(middle)
    if (later === null) end = middle
    else last = later
  }
  return new Date(last)
}

/** Between two times of a line. */
const shortestMs = 60_000

/** Rejects a line that cannot be read, a line without any time, and an unknown zone, and names the field. */
export function requireCronLine({ cron, timezone }: CronLine): void {
  if (!isTimeZone(timezone)) throw invalid({ path: '/timezone', reason: 'Unknown time zone; use a name such as Europe/Berlin' })
  const reason = whyUnfit(cron)
  if (reason) throw invalid({ path: '/cron', reason: `A cron line has five fields, such as "0 9 * * MON-FRI"; ${reason}` })
}

const fieldNames = ['minute', 'hour', 'day of the month', 'month', 'day of the week']

/** Without a word of the line, because an error never repeats what a caller sent. Only a line that can be read is searched for a time, because that may be long. */
function whyUnfit(cron: string): string | null {
  const fields = cron.trim().split(/\s+/)
  if (fields.length !== fieldNames.length) return `this one has ${fields.length}`
  const alone = (place: number) => fields.map((field, at) => (at === place ? field : '*')).join(' ')
  const unfit = fieldNames.filter((_, place) => !canBeRead(alone(place)))
  if (unfit.length > 0) return `of this one, the ${unfit.join(' and the ')} cannot be read`
  return canBeRead(cron) && nextTime({ cron, timezone: 'UTC' }, new Date()) ? null : 'no time fits this one'
}

function canBeRead(cron: string): boolean {
  try {
    return Boolean(parseLine({ cron, timezone: 'UTC' }))
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
