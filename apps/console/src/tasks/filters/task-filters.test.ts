import { expect, test } from 'vitest'
import { chipsIn, queryIn } from './task-filters.ts'

const now = Date.parse('2026-01-02T00:00:30.000Z')

test('filters in the address are the query, and a chip for each', () => {
  const address = '?search=ships&agent=echo&status=failed&error=timeout&within=60&min=1000&max=90000&metadata.customer=Nordwind'
  expect(queryIn(address, now)).toEqual({
    ...{ q: 'ships', agent: 'echo', status: 'failed', errorCode: 'timeout', minDurationMs: 1_000, maxDurationMs: 90_000 },
    ...{ createdAfter: '2026-01-01T23:00:00.000Z', metadata: { customer: 'Nordwind' } },
  })
  expect(chipsIn(address).map(({ label }) => label)).toEqual([
    ...['“ships”', 'Agent: echo', 'Status: failed', 'Error: timeout', 'Last hour'],
    ...['Ran at least 1.0 s', 'Ran at most 1 m 30 s', 'customer: Nordwind'],
  ])
})

test('what is not understood is left out', () => {
  const address = '?status=odd&within=soon&min=-5&max=&search=%20&unknown=1&metadata.=x'
  expect(queryIn(address, now)).toEqual({})
  expect(chipsIn(address)).toEqual([])
})
