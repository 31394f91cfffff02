/** The path of one thing, as the API spells it. */
export function pathOf(kind: 'agents' | 'files' | 'keys' | 'limits' | 'schedules' | 'tasks' | 'webhooks', id: string): string {
  return `/v1/${kind}/${encodeURIComponent(id)}`
}
