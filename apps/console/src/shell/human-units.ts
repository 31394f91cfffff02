/** Times, sizes and counts as people say them. */

export function duration(ms: number): string {
  if (ms < 0) return duration(0)
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${pad(seconds % 60)} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${pad(Math.floor((seconds % 3_600) / 60))} m`
  return `${Math.floor(seconds / 86_400)} d ${pad(Math.floor((seconds % 86_400) / 3_600))} h`
}

export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 5) return 'now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`
  return bytes < 1_000_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${(bytes / 1_000_000_000).toFixed(1)} GB`
}

export function count(value: number): string {
  if (value < 10_000) return value.toLocaleString('en')
  return value < 1_000_000 ? `${(value / 1_000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`
}

/** US dollars: cents, and more places for smaller sums. */
export function money(usd: number): string {
  const places = usd >= 0.1 || usd === 0 ? 2 : 4
  return `$${usd.toLocaleString('en', { minimumFractionDigits: places, maximumFractionDigits: places })}`
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
