import { Cron } from 'croner'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type CronLine, lastTime, nextTime, requireCronLine } from './cron-times.ts'

function timesOf(cron: string, timezone: string, from: string, count: number): string[] {
  const times: string[] = []
  let at: Date | null = new Date(from)
  while (times.length < count && at) {
    at = nextTime({ cron, timezone }, at)
    if (at) times.push(at.toISOString().slice(0, 16))
  }
  return times
}

describe('on a day with a clock change', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-03-28T12:00Z', ['2026-03-29T01:00', '2026-03-30T00:30']],
    ['America/New_York', '30 2 * * *', '2026-03-07T12:00Z', ['2026-03-08T07:00', '2026-03-09T06:30']],
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00Z', ['2026-10-03T15:30', '2026-10-04T15:15']],
  ])('a local time in %s that does not exist runs at the first minute after the gap', (zone, cron, from, times) => {
    expect(timesOf(cron, zone, from, 2)).toEqual(times)
  })

  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00Z', ['2026-10-25T00:30', '2026-10-26T01:30']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00Z', ['2026-11-01T05:30', '2026-11-02T06:30']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00Z', ['2026-04-04T14:45', '2026-04-05T15:15']],
  ])('a local time in %s that comes twice runs once', (zone, cron, from, times) => {
    expect(timesOf(cron, zone, from, 2)).toEqual(times)
  })

  test('a line of every 20 minutes has every one of them, in both directions', () => {
    expect(timesOf('*/20 * * * *', 'Europe/Berlin', '2026-03-29T00:30Z', 3)).toEqual([
      '2026-03-29T00:40',
      '2026-03-29T01:00',
      '2026-03-29T01:20',
    ])
    expect(timesOf('*/20 * * * *', 'Europe/Berlin', '2026-10-25T00:30Z', 5)).toEqual([
      '2026-10-25T00:40',
      '2026-10-25T01:00',
      '2026-10-25T01:20',
      '2026-10-25T01:40',
      '2026-10-25T02:00',
    ])
  })
})

test('the last time up to a moment is found from an earlier one', () => {
  const line = { cron: '0 * * * *', timezone: 'UTC' }
  const first = new Date('2026-01-01T00:00Z')
  expect(lastTime(line, first, new Date('2026-01-01T05:59Z')).toISOString()).toBe('2026-01-01T05:00:00.000Z')
  expect(lastTime(line, first, first)).toEqual(first)
})

test('the last time is the one that stepping through all times finds, also where clocks change', () => {
  const crons = ['* * * * *', '*/20 * * * *', '30 2 * * *', '0 0 * * 1', '59 23 31 * *', '0 0 29 2 *', '5,50 1-3 * * *']
  const line = fc.record({ cron: fc.constantFrom(...crons), timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe') })
  const start = fc.constantFrom('2026-03-28T12:00Z', '2026-10-24T12:00Z', '2026-04-04T00:00Z', '2028-02-28T00:00Z')
  fc.assert(
    fc.property(line, start, fc.integer({ min: 0, max: 3 * 24 * 3_600 }), (at, from, seconds) => {
      const first = nextTime(at, new Date(from)) ?? new Date(from)
      const until = new Date(first.getTime() + seconds * 1_000)
      expect(lastTime(at, first, until)).toEqual(stepThrough(at, first, until))
    }),
    { numRuns: 60 },
  )
})

test('the last of a year of minutes takes a few searches, and a line that never fits takes one', () => {
  const search = vi.spyOn(Cron.prototype, 'nextRun')
  onTestFinished(() => search.mockRestore())
  const line = { cron: '* * * * *', timezone: 'Europe/Berlin' }
  const until = new Date('2027-01-01T00:00:30Z')
  expect(lastTime(line, new Date('2026-01-01T00:00Z'), until).toISOString()).toBe('2027-01-01T00:00:00.000Z')
  expect(search.mock.calls.length).toBeLessThan(30)
  search.mockClear()
  expect(() => requireCronLine({ cron: '0 0 30 2 *', timezone: 'UTC' })).toThrow('Request validation failed')
  expect(search.mock.calls.length).toBe(1)
})

function stepThrough(line: CronLine, first: Date, until: Date): Date {
  let last = first
  for (let next = nextTime(line, last); next && next <= until; next = nextTime(line, last)) last = next
  return last
}

test.each([
  ['a minute that does not exist', '61 * * * *', 'UTC', '/cron', 'minute'],
  ['an hour that does not exist', '0 25 * * *', 'UTC', '/cron', 'hour'],
  ['four fields', '* * * *', 'UTC', '/cron', 'five'],
  ['every second', '* * * * * *', 'UTC', '/cron', 'five'],
  ['a range of names that do not exist', '0 9 * * MON-FOO', 'UTC', '/cron', 'day of the week'],
  ['two bad fields', '61 * 0 * *', 'UTC', '/cron', 'the minute and the day of the month'],
  ['a day that never comes', '0 0 31 2 *', 'UTC', '/cron', 'no time'],
  ['words', 'at nine', 'UTC', '/cron', 'five'],
  ['an unknown zone', '* * * * *', 'Mars/Base', '/timezone', 'Unknown time zone'],
])('a line with %s is rejected, and its field is named', (_, cron, timezone, path, reason) => {
  const details = [{ path, reason: expect.stringContaining(reason) }]
  expect(() => requireCronLine({ cron, timezone })).toThrow(expect.objectContaining({ code: 'validation_failed', details }))
})

test('the error does not repeat the line', () => {
  for (const cron of ['<b>secret</b>', 'secret * * * *', '0 0 * * secret'])
    expect(() => requireCronLine({ cron, timezone: 'UTC' })).toThrow(
      expect.objectContaining({ details: [{ path: '/cron', reason: expect.not.stringContaining('secret') }] }),
    )
})
