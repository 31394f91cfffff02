/** The bench works: every workload is run with a fiftieth of its load, and everything that was said is heard. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('a quick pass of the bench measures every contestant', { timeout: 900_000 }, async () => {
  const { code, report, progress } = await runBench('--quick')
  expect(code, progress).toBe(0)
  const tables = report.split('\n### ').slice(1)
  expect(tables.map(table => /^(\d\w?)\./.exec(table)?.[1] ?? 'folding')).toEqual([
    '1',
    '2',
    '3',
    '3b',
    '4',
    '4b',
    '5',
    '5b',
    '6',
    '7',
    '8',
    '9',
    '10',
    '11',
    '12',
    '13',
    '14',
    'folding',
  ])
  for (const table of tables.slice(0, 3)) {
    for (const name of ['bare socket.write', 'bare res.write', 'Rivulet', 'the straightforward way']) {
      expect(table).toMatch(new RegExp(`^\\| ${name} \\| [\\d,.]+ `, 'm'))
    }
  }
  expect(report).not.toMatch(/NaN|Infinity|left out/)
})

test('a workload that there is not is refused with those that there are', async () => {
  const { code, progress } = await runBench('--only', 'nothing')
  expect(code).toBe(1)
  expect(progress).toContain('--only takes: fan-out, full-speed, paced')
})

async function runBench(...args: string[]): Promise<{ code: number | null; report: string; progress: string }> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), 'bench/main.ts', ...args], { cwd: root })
  let report = ''
  let progress = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    report += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    progress += text
  })
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, report, progress }
}
