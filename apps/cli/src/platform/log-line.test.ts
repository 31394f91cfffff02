import { expect, test } from 'vitest'
import { formatLogLine } from './log-line.ts'

const pen = { style: (_: unknown, text: string) => text }
const time = new Date(2030, 0, 1, 9, 8, 7, 6).getTime()

test('time, program, level, message, task and turn stand in one line; process and host do not', () => {
  const line = JSON.stringify({ level: 30, time, pid: 1, hostname: 'h', task: 'T', turn: 2, attempt: 1, msg: 'turn is done' })
  expect(formatLogLine('api', line, pen)).toBe('09:08:07.006 api    info  turn is done task T turn 2 attempt=1')
})

test('a request is read as one', () => {
  const line = JSON.stringify({
    level: 30,
    time,
    msg: 'request completed',
    req: { method: 'GET', url: '/v1' },
    res: { statusCode: 200 },
    responseTime: 4.2,
  })
  expect(formatLogLine('api', line, pen)).toContain('request completed GET /v1 200 4 ms')
})

test('an error says what it is, and where only when it is serious', () => {
  const err = { message: 'no luck', stack: 'Error: no luck\n    at here (a.ts:1)' }
  expect(formatLogLine('worker', JSON.stringify({ level: 50, time, msg: 'failed', err }), pen)).toMatch(
    /failed: no luck\n +at here \(a\.ts:1\)$/,
  )
  expect(formatLogLine('worker', JSON.stringify({ level: 40, time, msg: 'failed', err }), pen)).not.toContain('at here')
})

test('a crash, which is no log line, is shown as it is', () => {
  expect(formatLogLine('api', 'Error: out of luck', pen).trim()).toBe('api    Error: out of luck')
  expect(formatLogLine('api', '{not json', pen)).toContain('{not json')
  expect(formatLogLine('api', '{"valid":1}', pen)).toContain('{"valid":1}')
})

test('what a stranger got into the log cannot leave its line', () => {
  const line = JSON.stringify({ level: 30, time, msg: 'a\u001b[2J\nb', name: 'c\r\nd' })
  expect(formatLogLine('api', line, pen)).toBe('09:08:07.006 api    info  a b name=c d')
})
