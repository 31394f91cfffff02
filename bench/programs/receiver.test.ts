/** The check of a benchmark's deliveries must report every incomplete stream. */
import { expect, test } from 'vitest'
import { eventOf, textOf } from '../measure/speech.ts'
import { createReceiver, createTally } from './receiver.ts'
import { createStreamReader } from './stream-reader.ts'

const frame = (...numbers: number[]) =>
  `id: 1-1\nevent: message.delta\ndata: ${eventOf('t', 1, numbers.map(n => textOf(n, 10)).join(''))}\n\n`

test('marks that arrive once and in order have no fault, merged or not', () => {
  const { tally, last } = receive(frame(1), frame(2, 3), ': hb\n\n', frame(4))
  expect(tally).toMatchObject({ deliveries: 4, frames: 4, faults: [] })
  expect(last).toBe(4)
  expect([...tally.latencies.slice(0, 4)]).toEqual([90, 90, 90, 90])
})

test.each([
  ['is missing', [frame(1), frame(3)], 'received 3, expected 2'],
  ['is missing within a merged frame', [frame(1, 3)], 'received 3, expected 2'],
  ['arrives twice', [frame(1), frame(1)], 'received 1, expected 2'],
  ['arrives too early', [frame(2), frame(1)], 'received 2, expected 1'],
  ['is malformed', [frame(1), frame(2).replace('@', '!')], 'received -1, expected 2'],
])('a delta that %s is a fault', (_, frames, fault) => {
  expect(receive(...frames).tally.faults).toContain(fault)
})

test('a response is read the same wherever it is cut', () => {
  const body = frame(1) + frame(2)
  const half = frame(1).length + 10
  const chunks = [body.slice(0, half), body.slice(half)].map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('')
  const response = Buffer.from(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)
  for (let cut = 1; cut < response.length; cut += 1) {
    const texts: string[] = []
    const reader = createStreamReader(text => texts.push(text))
    reader.feed(response.subarray(0, cut))
    reader.feed(response.subarray(cut))
    expect(texts.join('')).toBe(body)
    for (const text of texts) expect(text.endsWith('\n\n')).toBe(true)
  }
})

test('a status other than 200 is rejected', () => {
  expect(() => createStreamReader(() => {}).feed(Buffer.from('HTTP/1.1 503 No\r\n\r\n'))).toThrow('503')
})

function receive(...frames: string[]) {
  const tally = createTally(10)
  const receiver = createReceiver(tally)
  for (const text of frames) receiver.take(text, 100)
  return { tally, last: receiver.last() }
}
