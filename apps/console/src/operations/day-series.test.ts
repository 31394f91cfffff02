import { expect, test } from 'vitest'
import { daySeries } from './day-series.ts'

const sums = { usage: {}, tokens: 0, cost: null, unpriced: 0, responses: 0, turns: 0 }

test('every day has a value, also one without a response', () => {
  const series = daySeries({
    ...{ by: 'day', from: '2026-11-01T00:00:00.000Z', to: '2026-11-03T08:00:00.000Z', total: sums },
    data: [{ ...sums, group: '2026-11-02', usage: { inputTokens: 5, outputTokens: 2 }, cost: 0.5 }],
  })
  expect(series).toEqual({
    times: ['01', '02', '03'].map(day => Date.parse(`2026-11-${day}T00:00:00Z`) / 1_000),
    input: [0, 5, 0],
    output: [0, 2, 0],
    cost: [0, 0.5, 0],
  })
})
