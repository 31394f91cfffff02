import { expect, test } from 'vitest'
import { createPen, type PenStream } from './pen.ts'

const esc = '\u001b'

test.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: false }, {}, false],
  [{}, {}, false],
  [{ isTTY: true }, { NO_COLOR: '1' }, false],
  [{ isTTY: true }, { NO_COLOR: '' }, true],
  [{ isTTY: true }, { TERM: 'dumb' }, false],
  [{ isTTY: false }, { FORCE_COLOR: '1' }, true],
  [{ isTTY: true }, { FORCE_COLOR: '0' }, false],
  [{ isTTY: false }, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
])('%o with %o has color: %s', (stream, environment, hasColor) => {
  const pen = createPen(made(stream).stream, environment)
  expect(pen.style('red', 'x')).toBe(hasColor ? `${esc}[31mx${esc}[39m` : 'x')
})

test('a line that was begun is ended once', () => {
  const { stream, written } = made({})
  const pen = createPen(stream, {})
  pen.freshLine()
  pen.write('a')
  pen.freshLine()
  pen.freshLine()
  expect(written()).toBe('a\n')
})

test('a line that ends within a color has ended', () => {
  const { stream, written } = made({})
  const pen = createPen(stream, { FORCE_COLOR: '1' })
  pen.write(pen.style('dim', 'a\n'))
  pen.freshLine()
  pen.write(pen.style('dim', 'b'))
  pen.freshLine()
  expect(written()).toBe(`${esc}[2ma\n${esc}[22m${esc}[2mb${esc}[22m\n`)
})

test('flushing waits only for a slow reader', async () => {
  let isTaken = false
  const slow = {
    writableLength: 1,
    write: (_: string, taken?: () => void) => taken && setImmediate(() => (isTaken = true)) && setImmediate(taken),
  }
  await createPen(slow, {}).flush()
  expect(isTaken).toBe(true)
  await createPen({ writableLength: 0, write: () => {} }, {}).flush()
})

test('a status line stands below what is written, never inside a line, and is gone in the end', () => {
  const { stream, written } = made({ isTTY: true })
  const pen = createPen(stream, { NO_COLOR: '1' })
  pen.status(() => 'busy')
  pen.write('half')
  pen.write(' a line\n')
  pen.status(null)
  expect(written().split(`\r${esc}[2K`)).toEqual(['', '⠋ busy', 'half a line\n', '⠋ busy', ''])
})

test('a status line never wraps', () => {
  const { stream, written } = made({ isTTY: true, columns: 10 })
  const pen = createPen(stream, { NO_COLOR: '1' })
  pen.status(() => 'far too long to fit')
  pen.status(null)
  expect(written()).toContain('⠋ far to…')
})

test('where nearly nothing fits there is no status line', () => {
  const { stream, written } = made({ isTTY: true, columns: 4 })
  createPen(stream, {}).status(() => 'busy')
  expect(written()).toBe('')
})

test('in a pipe there is no status line', () => {
  const { stream, written } = made({})
  createPen(stream, { FORCE_COLOR: '1' }).status(() => 'busy')
  expect(written()).toBe('')
})

function made(shape: Omit<PenStream, 'write'>): { stream: PenStream; written: () => string } {
  let all = ''
  return { stream: { ...shape, write: (text: string) => (all += text) }, written: () => all }
}
