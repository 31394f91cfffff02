/** Liveness, readiness and metrics of an API process. */
import { z } from 'zod'
import { route } from './route.ts'

const tag = 'operations'
const statusIs = <S extends string>(status: S) => z.object({ status: z.literal(status) })

export const checkHealth = route('GET /healthz', {
  ...{ tag, scope: null, anyHost: true },
  returns: { 200: statusIs('ok') },
  doc: 'Reports that the process is running',
})

export const checkReadiness = route('GET /readyz', {
  ...{ tag, scope: null, anyHost: true },
  returns: { 200: statusIs('ready') },
  errors: ['dependency_unavailable'],
  doc: 'Reports whether the process has all that it needs',
})

export const readMetrics = route('GET /metrics', {
  ...{ tag, scope: 'metrics' },
  returns: { 200: { description: 'In the format of Prometheus', content: { 'text/plain': { schema: z.string() } } } },
  doc: 'Returns the metrics of the process',
})
