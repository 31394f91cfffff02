import { randomUUID } from 'node:crypto'
import { encodeByteText, type LogReader } from '@rivulet/broker'
import { origin } from '@rivulet/protocol'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createKeptParts, createLogPages, type LogPages } from './log-pages.ts'

const task = randomUUID()

test('what is kept of a log is sent without asking for it again, and is not taken for another life of that log', async () => {
  const kept = createKeptParts()
  const [before, after] = [logThatSays('before'), logThatSays('after')]
  const pages = createLogPages({ log: before, task, kept })
  expect(await everything(pages)).toContain('before')
  expect(await everything(pages)).toContain('before')
  expect(before.read).toHaveBeenCalledTimes(1)
  // A feed that was loaded anew.
  expect(await everything(createLogPages({ log: after, task, kept }))).toContain('after')
  expect(after.read).toHaveBeenCalledTimes(1)
})

test('a part holds its bytes, and no event that was parsed to frame them, because the room for parts is counted in bytes', async () => {
  const { parts } = await createLogPages({ log: logThatSays('kept'), task, kept: createKeptParts() }).after(origin, 10, '1-1')
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  expect(parts[0]?.shared?.frames[0]?.event).toMatchObject({ data: 'kept' })
  expect(parse).toHaveBeenCalledTimes(1)
})

/** The same cursor in each. */
function logThatSays(word: string) {
  const event = { type: 'custom', task, turn: 1, attempt: 1, at: 1, name: 'note', data: word }
  return {
    read: vi.fn(async () => [{ cursor: '1-1' as const, json: encodeByteText(JSON.stringify(event)) }]),
    state: async () => ({ cursor: '1-1' as const, epoch: 1, number: 1, isWhole: true, isStale: false }),
  } satisfies LogReader
}

async function everything(pages: LogPages): Promise<string> {
  const { parts } = await pages.after(origin, 10, '1-1')
  return parts.map(({ shared }) => shared?.plain.toString()).join('')
}
