import { expect, test } from 'vitest'
import { createPen } from '../terminal/pen.ts'
import { createPlatformLog } from './platform-log.ts'

test('for programs, every line is a JSON object that names its program', () => {
  let written = ''
  const log = createPlatformLog(createPen({ write: (text: string) => (written += text) }, {}), true)
  log.write('redis 7')
  log.hear('api', '{"level":30,"msg":"ready"}')
  log.hear('api', 'Error: no luck')
  expect(
    written
      .trim()
      .split('\n')
      .map(line => JSON.parse(line)),
  ).toEqual([
    { program: 'rivulet', msg: 'redis 7' },
    { program: 'api', level: 30, msg: 'ready' },
    { program: 'api', msg: 'Error: no luck' },
  ])
})
