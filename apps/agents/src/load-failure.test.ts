/** In a process of its own, because the test runner's loader words its errors differently from Node's and tsx'. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'rivulet-load-failure-')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const failures: Record<string, [code: string, description: string]> = {
  'compiler.ts': ['const a = 1\nconst b: number = ;\n', 'compiler.ts:2:18: Unexpected ";"'],
  'imports-it.ts': ["import './compiler.ts'\n", 'compiler.ts:2:18: Unexpected ";"'],
  'syntax.mjs': ['const a = 1\nconst b = ;\n', "syntax.mjs:2: Unexpected token ';'"],
  'file.ts': [
    "const a: number = 1\nimport './nowhere.ts'\n",
    `file.ts:2: Cannot find module '${folder}/nowhere.ts' imported from ${folder}/file.ts`,
  ],
  'package.ts': ["\nimport 'no-such-package'\n", `package.ts:2: Cannot find package 'no-such-package' imported from ${folder}/package.ts`],
  'name.mjs': ["import { no } from 'node:fs'\n", "name.mjs:1: The requested module 'node:fs' does not provide an export named 'no'"],
  'throws.ts': ["type T = 1\n\nthrow new Error('no key\\nmore')\n", 'throws.ts:3:7: no key'],
  'text.mjs': ["throw 'text'\n", 'text.mjs: text'],
}

test('every way in which a file cannot be loaded is one line, with the file and the line in it', () => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const [file, [code]] of Object.entries(failures)) writeFileSync(join(folder, file), code)
  const loader = join(folder, 'load.mjs')
  writeFileSync(
    loader,
    `import { loadAgents } from ${JSON.stringify(new URL('./agent-file.ts', import.meta.url).pathname)}
for (const file of process.argv.slice(2)) await loadAgents([file]).catch(error => console.log(error.message))`,
  )
  const args = ['--import', import.meta.resolve('tsx'), loader, ...Object.keys(failures)]
  const described = execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  expect(described.trimEnd().split('\n')).toEqual(
    Object.entries(failures).map(([file, [, description]]) => `${file} cannot be loaded: ${description}`),
  )
})
