/** Every variable is described, once, where its program reads it; documents repeat that and nothing else. `npm run generate` writes them. */
import { describe, expect, test } from 'vitest'
import { allVariables, exampleOf } from '../../scripts/generated/variables.ts'
import { filesUnder, readText } from './repository.ts'

const variables = allVariables()
const names = new Set(variables.map(({ name }) => name))

/** The system's, not ours. */
const ofTheSystem = ['PATH', 'PYTHONPATH', 'TERM', 'NO_COLOR', 'FORCE_COLOR']

test('no program reads a variable that is not in the table', () => {
  const sources = filesUnder('apps').filter(path => /\/src\/.*(?<!\.test)\.tsx?$/.test(path) && !path.startsWith('apps/console/'))
  const read = sources.flatMap(path =>
    Array.from(readText(path).matchAll(/\benv(?:ironment)?\.([A-Z][A-Z_]+)\b/g), ([, name]) => name ?? ''),
  )
  expect(read).toContain('KEY_PEPPER')
  expect(read.filter(name => !names.has(name) && !ofTheSystem.includes(name))).toEqual([])
})

test('the documents name no variable of ours that does not exist', () => {
  const pages = ['README.md', ...filesUnder('docs').filter(path => path.endsWith('.md'))]
  const named = pages.flatMap(path =>
    Array.from(readText(path).matchAll(/`((?:RIVULET|MAX|LOG|TASK|WORKER|RATE_LIMIT|REDIS|INTERNAL)_[A-Z_]+)`/g)),
  )
  const ofCompose = new Set(Array.from(readText('docker-compose.yml').matchAll(/\$\{(\w+):/g), ([, name]) => name))
  expect(named.map(([, name]) => name ?? '').filter(name => !names.has(name) && !ofCompose.has(name))).toEqual([])
})

describe('what is written', () => {
  const variable = {
    name: 'A',
    readBy: ['API' as const],
    meaning: 'what `a` is',
    byDefault: null,
    bounds: '',
    example: null,
    isInternal: false,
  }

  test('what has to be set is set in the example, everything else is a comment, and what is not for people is left out', () => {
    const example = exampleOf([
      { ...variable, name: 'URL', example: 'redis://here' },
      { ...variable, name: 'PORT', byDefault: '4000' },
      { ...variable, name: 'HIDDEN', isInternal: true },
    ])
    expect(example).toMatch(/^# what a is \(API\)\nURL=redis:\/\/here\n\n# what a is \(API\)\n# PORT=4000\n$/m)
    expect(example).not.toContain('HIDDEN')
  })
})
