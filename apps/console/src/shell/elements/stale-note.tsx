/** Says that what is shown is not up to date, since when, and why. */
import { useNow } from '../hooks/use-now.ts'
import { duration } from '../human-units.ts'

export function StaleNote({ error, updatedAt, className = '' }: { error: string | null; updatedAt: number; className?: string }) {
  const now = useNow(error ? 1_000 : null)
  if (!error) return null
  const since =
    updatedAt > 0 ? `Not up to date for ${duration(Math.max(1_000, Math.round((now - updatedAt) / 1_000) * 1_000))}` : 'Not loaded yet'
  return (
    <p role="alert" className={`rounded-lg bg-warn-well px-3 py-2 text-[13px] text-warn ${className}`}>
      {since}: {error}. Trying again …
    </p>
  )
}
