/** The scopes of calls, which the API enforces as the contract has them: no other test would notice a row that asks for too little. */
import { callOf, routes } from '@rivulet/contract/routes'
import { expect, test } from 'vitest'

const rows = [...routes.values()]

function callsOf(scope: string | null): string[] {
  return rows
    .filter(row => row.scope === scope)
    .map(callOf)
    .sort()
}

test('two calls are public', () => {
  expect(callsOf(null)).toEqual(['GET /healthz', 'GET /readyz'])
})

test('calls about keys, limits and agents of a tenant need `admin`', () => {
  expect(callsOf('admin')).toEqual([
    'DELETE /v1/agents/{name}',
    'DELETE /v1/keys/{id}',
    'DELETE /v1/limits/{agent}',
    'GET /v1/audit',
    'GET /v1/keys',
    'PATCH /v1/agents/{name}',
    'POST /v1/keys',
    'POST /v1/keys/{id}/rotate',
    'PUT /v1/limits/{agent}',
  ])
})

test('the metrics need `metrics`', () => {
  expect(callsOf('metrics')).toEqual(['GET /metrics'])
})

test('the calls of workers need `worker`, and no other call does', () => {
  const ofWorkers = rows.map(callOf).filter(call => / \/(internal|worker)\//.test(call))
  expect(callsOf('worker')).toEqual(ofWorkers.sort())
})

test('of all others, those that read need `tasks:read`, and those that change something `tasks:write`', () => {
  // The first reads the events of several tasks. The second creates a token with no more rights than its caller has.
  const posts = ['POST /v1/events', 'POST /v1/tasks/{id}/tokens']
  const needsRead = (call: string) => call.startsWith('GET ') || posts.includes(call)
  expect(callsOf('tasks:read').filter(call => !needsRead(call))).toEqual([])
  expect(callsOf('tasks:write').filter(needsRead)).toEqual([])
})
