/**
 * Plain English: the words that hide the actor, counted in comments, texts and titles of the sources, in the documents, and in YAML, SQL, shell and Lua.
 * Identifiers of TypeScript do not count. The number may only fall: when it does, lower `most`.
 */
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'
import { filesUnder, readText } from './repository.ts'

const most = 0

/** "Answers" stands for "returns", "responds" or "responses". */
const words =
  /\b(whoever|somebody|nobody|everybody|anybody|(?:those|one|all|only|thousands|for|of) who|what comes|(?:is|are|was|were)(?: not)? told|is had|is away|(?:is|are) none|answers)\b/gi

test('the words that hide the actor do not become more', () => {
  const found = [...proseFiles(), ...sourceFiles()].flatMap(([path, text]) =>
    Array.from(text.matchAll(words), ([word]) => `${path}: ${word}`),
  )
  expect(found.length, found.join('\n')).toBeLessThanOrEqual(most)
})

test('they are counted in comments, texts, titles and pages, and not in identifiers', () => {
  const source = `// nobody was not told\nconst somebody = \`\${answers} whoever\` /* is told, that is none */; test('everybody'); const x = <p>anybody</p>`
  expect(textOf('a.tsx', source).match(words)).toEqual(['nobody', 'was not told', 'is told', 'is none', 'whoever', 'everybody', 'anybody'])
})

function proseFiles(): [string, string][] {
  const folders = ['docs', 'apps', 'packages', 'examples', 'test'].flatMap(filesUnder)
  const others = ['migrations', 'ops', 'scripts', 'bench', '.github'].flatMap(filesUnder)
  const written = [...folders, ...others].filter(path => /\.(md|sql|ya?ml|sh|lua)$/.test(path))
  const atRoot = ['README.md', 'CONTRIBUTING.md', 'CODE_OF_CONDUCT.md', 'SECURITY.md', 'docker-compose.yml', 'Dockerfile', '.env.example']
  return [...atRoot, ...written].map(path => [path, readText(path)])
}

function sourceFiles(): [string, string][] {
  const sources = ['apps', 'packages', 'examples', 'test', 'scripts', 'bench']
    .flatMap(filesUnder)
    .filter(path => /\.(m?[jt]s|tsx)$/.test(path))
  return sources.filter(path => path !== 'test/rules/words.test.ts').map(path => [path, textOf(path, readText(path))])
}

/** What people read of a source: comments, then texts. */
function textOf(path: string, source: string): string {
  const { program, comments } = parseSync(path, source)
  const texts = comments.map(({ value }) => value.replaceAll(/\s*\n\s*\*?\s*/g, ' '))
  new Visitor({
    Literal: ({ value }) => void (typeof value === 'string' && texts.push(value)),
    TemplateElement: ({ value }) => void texts.push(value.raw),
    JSXText: ({ value }) => void texts.push(value),
  }).visit(program)
  return texts.join('\n')
}
