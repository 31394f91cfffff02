import { RivuletError } from '@rivulet/protocol'

type Kind = 'agents' | 'files' | 'keys' | 'limits' | 'schedules' | 'store' | 'tasks' | 'webhooks'

/** The path of one thing, as the API spells it. A URL has no part `.` or `..`: it would be the path of something else. */
export function pathOf(kind: Kind, ...names: readonly string[]): string {
  return ['/v1', kind, ...names.map(partOf)].join('/')
}

export function partOf(name: string): string {
  if (/^\.\.?$/.test(name)) throw new RivuletError('bad_call', 'Not a name')
  return encodeURIComponent(name)
}
