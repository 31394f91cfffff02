/** Failpoints are in the programs of the fault bench, and in no other. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { failpoint, failpoints } from '@rivulet/runtime/failpoint'
import { expect, onTestFinished, test } from 'vitest'
import { bundlePrograms } from '../../scripts/bundle.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const handler = fileURLToPath(new URL('../faults/failpoints.ts', import.meta.url))

test('a program that is deployed has no failpoint', async () => {
  expect((await bundled()).split('\n').filter(line => /failpoint/i.test(line))).toEqual([])
})

test('the programs of the bench have every failpoint', async () => {
  const text = await bundled(handler)
  expect(failpoints.filter(name => !text.includes(`failpoint("${name}"`))).toEqual([])
})

test('a program that runs from its sources has no handler for failpoints', () => {
  expect(failpoint).toBe(undefined)
})

async function bundled(failpoints?: string): Promise<string> {
  const out = mkdtempSync(join(tmpdir(), 'rivulet-bundle-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  await bundlePrograms({ root, out, ...(failpoints && { failpoints }) })
  return ['api', 'worker'].map(program => readFileSync(join(out, program, 'main.mjs'), 'utf8')).join('\n')
}
