/** The filters of the list as they are in the address: what they ask of the server, and how a person reads them. */
import type { TaskQuery, TaskStatus } from '@rivulet/client'
import { duration } from '../../shell/human-units.ts'

export const statuses: readonly TaskStatus[] = ['queued', 'running', 'waiting', 'completed', 'failed', 'canceled']

export const periods: readonly { minutes: number; name: string }[] = [
  { minutes: 15, name: '15 minutes' },
  { minutes: 60, name: 'hour' },
  { minutes: 1_440, name: 'day' },
  { minutes: 10_080, name: '7 days' },
  { minutes: 43_200, name: '30 days' },
]

/** `name` is that of the value in the address. */
type Chip = { name: string; label: string }

/** What is not understood is left out, because an address is written by people, too. */
export function queryIn(address: string, now: number): TaskQuery {
  const fields = new URLSearchParams(address)
  const text = (name: string) => fields.get(name)?.trim() || undefined
  const status = statuses.find(known => known === text('status'))
  const [agent, errorCode, parent, q, fingerprint] = ['agent', 'error', 'parent', 'search', 'fingerprint'].map(text)
  const [within, minDurationMs, maxDurationMs] = ['within', 'min', 'max'].map(name => numberIn(text(name)))
  const metadata = metadataIn(fields)
  return {
    ...(agent && { agent }),
    ...(status && { status }),
    ...(errorCode && { errorCode }),
    ...(parent && { parent }),
    ...(fingerprint && /^[\da-f]{32}$/.test(fingerprint) && { errorFingerprint: fingerprint }),
    // By the minute, so that the same filter is the same query for a while.
    ...(within !== undefined && { createdAfter: new Date(Math.floor(now / 60_000 - within) * 60_000).toISOString() }),
    ...(minDurationMs !== undefined && { minDurationMs }),
    ...(maxDurationMs !== undefined && { maxDurationMs }),
    ...(q && { q }),
    ...(metadata.length > 0 && { metadata: Object.fromEntries(metadata) }),
  }
}

export function chipsIn(address: string): Chip[] {
  const fields = new URLSearchParams(address)
  const known = Object.entries(labels).flatMap(([name, labelOf]) => {
    const value = fields.get(name)?.trim()
    const label = value && labelOf(value)
    return label ? [{ name, label }] : []
  })
  return [...known, ...metadataIn(fields).map(([key, value]) => ({ name: `metadata.${key}`, label: `${key}: ${value}` }))]
}

const labels: Record<string, (value: string) => string | null> = {
  search: value => `“${value}”`,
  agent: value => `Agent: ${value}`,
  status: value => (statuses.includes(value as TaskStatus) ? `Status: ${value}` : null),
  error: value => `Error: ${value}`,
  fingerprint: value => (/^[\da-f]{32}$/.test(value) ? `Reason: ${value.slice(0, 8)}…` : null),
  parent: value => `Children of ${value.slice(0, 8)}…`,
  within: value => {
    const minutes = numberIn(value)
    if (minutes === undefined) return null
    return `Last ${periods.find(period => period.minutes === minutes)?.name ?? duration(minutes * 60_000)}`
  },
  min: value => timeLabel('Ran at least', value),
  max: value => timeLabel('Ran at most', value),
}

function timeLabel(words: string, value: string): string | null {
  const ms = numberIn(value)
  return ms === undefined ? null : `${words} ${duration(ms)}`
}

function metadataIn(fields: URLSearchParams): [key: string, value: string][] {
  return [...fields].filter(([name]) => /^metadata\../.test(name)).map(([name, value]) => [name.slice('metadata.'.length), value])
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined
}
