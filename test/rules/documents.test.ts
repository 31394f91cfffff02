/** The documents are found, lead to what is there, and show code that type-checks. */
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { typeErrorsIn } from '../support/texts/type-errors.ts'
import { exists, filesUnder, readText } from './repository.ts'

/** The width of prose in a document. */
const width = 160
const documents = filesUnder('docs').filter(path => path.endsWith('.md'))
const readmes = [
  'README.md',
  'CONTRIBUTING.md',
  'CODE_OF_CONDUCT.md',
  'SECURITY.md',
  ...['apps', 'packages', 'examples'].flatMap(filesUnder).filter(path => posix.basename(path) === 'README.md'),
]

test('the README leads to every document', () => {
  const [, readOn = ''] = readText('README.md').split('\n## Read on\n')
  expect(documents.filter(path => !readOn.includes(`](${path})`))).toEqual([])
})

test.each([...documents, ...readmes])('%s links to what is there', document => {
  const links = Array.from(readText(document).matchAll(/\]\((?!\w+:)([^)\s]+)\)/g), ([, target = '']) => target)
  expect(links.filter(link => !leadsSomewhere(document, link))).toEqual([])
})

test.each([...documents, ...readmes])(`%s wraps at ${width} characters, except tables and code`, document => {
  expect(proseOf(readText(document)).filter(line => line.length > width)).toEqual([])
})

test('what is a whole program in a document type-checks', () => {
  const whole = ['docs/quick-start.md', 'docs/writing-agents.md', 'docs/calling-agents.md', 'docs/waits.md']
  // Elsewhere, what has no import is a part of a program.
  const programs = documents.flatMap(path => blocksOf(readText(path)).filter(({ text }) => whole.includes(path) || isProgram(text)))
  // What imports a neighbour is a file of examples/, and is checked where it lies.
  const typed = programs.filter(({ language, text }) => /^tsx?$/.test(language) && !text.includes(`from './`))
  expect(typed.length).toBeGreaterThan(12)
  expect(typeErrorsIn(typed)).toBe('')
})

test('code that does not type-check would be noticed', () => {
  const text = `import { defineAgent } from '@rivulet/worker'\nexport default defineAgent('a', turn => turn.shout('b'))`
  expect(typeErrorsIn([{ language: 'ts', text }])).toContain('shout')
})

/** One that imports what is installed here; test/sdks has the SDKs of other people. */
function isProgram(text: string): boolean {
  return (
    /^import /m.test(text) &&
    !/from '(ai|openai|@ai-sdk|@openai|@langchain|@ag-ui|@a2a-js|@modelcontextprotocol|@rivulet\/client\/ag-ui)/.test(text)
  )
}

/** The lines outside fenced blocks and tables. */
function proseOf(markdown: string): string[] {
  const withoutCode = markdown.replaceAll(/^ *(```+|~~~+)[^\n]*\n[\s\S]*?^ *\1 *$/gm, '')
  return withoutCode.split('\n').filter(line => !line.startsWith('|'))
}

function leadsSomewhere(document: string, link: string): boolean {
  const [path = '', heading] = link.split('#')
  const target = path === '' ? document : posix.join(posix.dirname(document), path)
  if (!exists(target)) return false
  return heading === undefined || headingsOf(readText(target)).includes(heading)
}

/** As GitHub names them. */
function headingsOf(markdown: string): string[] {
  return Array.from(markdown.matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
