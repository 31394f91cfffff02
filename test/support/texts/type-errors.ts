/** What the compiler says of programs in documents, each a module of its own, as if they lay in a folder of this repository. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FencedBlock } from './fenced-blocks.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** @param base the folder with the packages that the programs import, from the root */
export function typeErrorsIn(programs: Pick<FencedBlock, 'language' | 'text'>[], base = '.'): string {
  mkdirSync(join(root, base, '.rivulet'), { recursive: true })
  const folder = mkdtempSync(join(root, base, '.rivulet', 'snippets-'))
  try {
    // For pages and for Node at once: each program needs only one of them.
    const compilerOptions = { jsx: 'react-jsx', lib: ['ES2023', 'ES2024.String', 'ESNext.Disposable', 'DOM', 'DOM.AsyncIterable'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: ['*'] }))
    for (const [i, { language, text }] of programs.entries()) writeFileSync(join(folder, `snippet-${i}.${language}`), text)
    const { stdout, stderr, error } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: root, encoding: 'utf8' })
    return `${stdout}${stderr}${error ?? ''}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
