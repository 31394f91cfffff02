/**
 * The metrics of a process, in the format of Prometheus, without the series that name what belongs to other tenants: an agent that is not among
 * these, and the version of a worker, which may be anyone's. A series of a shared agent counts the turns of all tenants.
 */
export function metricsOfAgents(text: string, agents: ReadonlySet<string>): string {
  return text
    .split('\n')
    .filter(line => isShown(line, agents))
    .join('\n')
}

/** Names of agents need no escapes, and the label `other` stands for several. */
function isShown(line: string, agents: ReadonlySet<string>): boolean {
  const [, labels] = /^rivulet_\w+\{(.*)\}/.exec(line) ?? []
  if (labels === undefined) return true
  const [, agent] = /(?:^|,)agent="([^"]*)"/.exec(labels) ?? []
  return agent === undefined ? !/(?:^|,)version="/.test(labels) : agents.has(agent)
}
