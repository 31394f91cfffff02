type Kind = 'agents' | 'files' | 'keys' | 'limits' | 'schedules' | 'store' | 'tasks' | 'webhooks'

/** The path of one thing, as the API spells it. */
export function pathOf(kind: Kind, ...names: readonly string[]): string {
  return ['/v1', kind, ...names.map(encodeURIComponent)].join('/')
}
