/** Formats durations for people: as exact as useful, at most eight characters. */
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

export function formatDuration(ms: number): string {
  const whole = Math.max(0, ms)
  if (whole < second) return `${Math.round(whole)} ms`
  if (whole < minute) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`
  if (whole < hour) return `${Math.floor(whole / minute)} m ${Math.floor((whole % minute) / second)} s`
  if (whole < day) return `${Math.floor(whole / hour)} h ${Math.floor((whole % hour) / minute)} m`
  return `${Math.floor(whole / day)} d`
}

/** What a person writes: `90d`, `12h`, `30m`, `10s`. Null for anything else. */
export function parseDuration(text: string): number | null {
  const [, count, unit] = /^(\d{1,5})([dhms])$/.exec(text) ?? []
  return count === undefined ? null : Number(count) * { d: day, h: hour, m: minute, s: second }[unit as 'd' | 'h' | 'm' | 's']
}

/** How long ago a time of the API was. A clock that goes differently there is no reason for a negative age. */
export function formatAge(time: string, now: number): string {
  const ms = now - Date.parse(time)
  return ms < second ? 'now' : `${formatDuration(ms).replace(/\.\d/, '')} ago`
}
