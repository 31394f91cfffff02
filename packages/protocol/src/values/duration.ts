/** A length of time, as people write it: `90s`, `15m`, `3d`; or a number of milliseconds. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds; null for what is no length of time. */
export function durationMs(duration: unknown): number | null {
  if (typeof duration === 'number') return Number.isFinite(duration) && duration >= 0 ? Math.round(duration) : null
  const [, count, unit] = (typeof duration === 'string' && /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/.exec(duration)) || []
  return count === undefined ? null : Math.round(Number(count) * unitMs[unit as keyof typeof unitMs])
}
