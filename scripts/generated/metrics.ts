/** The metrics of an API and of a worker. */
import { createWorkerMetrics } from '@rivulet/agents/metrics'
import { createMetrics } from '@rivulet/api/metrics'
import { code, tableOf } from './marked-block.ts'

export type DeclaredMetric = { name: string; help: string; type: string; labelNames: string[] }

/** Ours, and those of Node and the process. */
export function declaredMetrics(): DeclaredMetric[] {
  return [createMetrics().registry, createWorkerMetrics(1).registry].flatMap(
    registry => registry.getMetricsAsArray() as unknown as DeclaredMetric[],
  )
}

export function metricsTable(): string {
  const ours = declaredMetrics().filter(({ name }) => name.startsWith('rivulet_'))
  return tableOf(
    ['metric', 'kind', 'labels', 'meaning'],
    ours.map(({ name, type, labelNames, help }) => [code(name), type, labelNames.map(code).join(', '), help]),
  )
}
