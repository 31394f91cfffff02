/** What a caller sends costs an example agent work in proportion to its length: no input of one request may keep its process busy for seconds. */
import { user } from '@rivulet/agent'
import { text } from '@rivulet/protocol'
import type { Turn } from '@rivulet/worker'
import { describe, expect, test } from 'vitest'
import { offlineReply } from './assistant/offline-replies.ts'
import { echo } from './echo.ts'
import { citeOffline } from './research/cited.ts'
import { scoutOffline } from './research/offline-scout.ts'
import { researchOffline } from './research/researcher.ts'

const length = 200_000
const endless: [string, string][] = [
  ['blanks', ' '.repeat(length)],
  ['a word, then blanks', `a${' '.repeat(length)}`],
  ['line ends', '\r\n'.repeat(length / 2)],
  ['brackets', '('.repeat(length)],
  ['minus signs', '-'.repeat(length)],
  ['a sum that never ends', `1${'-'.repeat(length)}`],
  ['a sum that ends in brackets', `1${'+'.repeat(length)})`],
  ['digits and blanks', '1 '.repeat(length / 2)],
  ['full stops', '.'.repeat(length)],
  ['one word', 'a'.repeat(length)],
  ['names of time zones that go on', `what time is it in ${'A'.repeat(length)}`],
]

/** A pattern that looks at every blank again for every blank takes 35,000 of these for 200 KB; one look takes fewer than ten. */
const maxCpuMs = 2_000

describe.each([
  ['echo', (input: string) => drain(echo.run(turnWith(input)))],
  ['assistant', (input: string) => offlineReply({ messages: [user(input)] })],
  ['cited', (input: string) => citeOffline({ messages: [user(input)] })],
  ['researcher', (input: string) => researchOffline({ messages: [user(input)] })],
  ['scout', (input: string) => scoutOffline({ messages: [user(input)] })],
])('%s', (_, work) => {
  test.each(endless)('%s', async (__, input) => {
    const before = process.cpuUsage()
    await work(input)
    const { user: spent } = process.cpuUsage(before)
    expect(spent / 1_000).toBeLessThan(maxCpuMs)
  })
})

test('echo says every character of its input, a word at a time', async () => {
  expect(await drain(echo.run(turnWith('  hello,\n wide  world ')))).toEqual(['  hello,\n ', 'wide  ', 'world '])
  expect(await drain(echo.run(turnWith('  ')))).toEqual(['  '])
  expect(await drain(echo.run(turnWith('')))).toEqual([])
})

function turnWith(said: string): Turn {
  const input = text(said)
  return { input, inputs: [input], text: said } as unknown as Turn
}

async function drain(running: ReturnType<typeof echo.run>): Promise<string[]> {
  const words: string[] = []
  if (Symbol.asyncIterator in running)
    for await (const update of running) if (update.type === 'delta' && update.delta.type === 'text') words.push(update.delta.text)
  return words
}
