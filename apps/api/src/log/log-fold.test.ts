import { encodeByteText, type LogEntry, type LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, formatCursor } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { readLog } from './log-fold.ts'

const MiB = 1024 * 1024

describe('a log is read', () => {
  test.each([0, 1, 19, 20, 21, 39, 500, 5_000])('with each entry once, of %i', async count => {
    const { log, entries } = createLog(Array.from({ length: count }, () => 100))
    expect(await readAll(log, '1-1')).toEqual(entries)
    expect(await readAll(log, '1-1', '1-7')).toEqual(entries.slice(0, 7))
    expect(await readAll(log, '1-15')).toEqual(entries.slice(14))
  })

  test('in pages by their bytes: small entries many at a time, large ones few', async () => {
    const small = createLog(Array.from({ length: 5_000 }, () => 100))
    await readAll(small.log, '1-1')
    expect(small.pages.length).toBeLessThan(8)
    const large = createLog(Array.from({ length: 100 }, () => 200 * 1024))
    await readAll(large.log, '1-1')
    expect(Math.max(...large.pages)).toBeLessThanOrEqual(20 * 200 * 1024)
    expect(Math.max(...large.pages.slice(1))).toBeLessThanOrEqual(2 * MiB)
  })

  test('and where it is trimmed or lost meanwhile, that is an error and no hole', async () => {
    const { log, trim } = createLog(Array.from({ length: 100 }, () => 100))
    const reading = readLog(log, 'task', '1-1')
    await reading.next()
    trim(50)
    await expect(reading.next()).rejects.toMatchObject({ code: 'dependency_unavailable' })
  })
})

async function readAll(log: LogReader, from: Cursor, to?: Cursor): Promise<LogEntry[]> {
  const read: LogEntry[] = []
  for await (const page of readLog(log, 'task', from, to)) read.push(...page)
  return read
}

/** With entries of so many bytes each; `pages` are the bytes of what was read at a time. */
function createLog(sizes: number[]) {
  let entries = sizes.map((bytes, i): LogEntry => ({ cursor: formatCursor(1, i + 1), json: encodeByteText('x'.repeat(bytes)) }))
  const pages: number[] = []
  const log: LogReader = {
    state: async () => null,
    read: async (_, from, count, to) => {
      const isWanted = ({ cursor }: LogEntry) => compareCursors(cursor, from) >= 0 && (!to || compareCursors(cursor, to) <= 0)
      const page = entries.filter(isWanted).slice(0, count)
      pages.push(page.reduce((sum, { json }) => sum + json.length, 0))
      return page
    },
  }
  return { log, entries, pages, trim: (count: number) => (entries = entries.slice(count)) }
}
