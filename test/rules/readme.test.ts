/**
 * A command that a document shows is run by a test.
 *
 * When you add a command to a document, add it to `proofs` with the file that runs it; when you take one out, take it out here as well.
 */
import { describe, expect, test } from 'vitest'
import { commandsOf, type Proof, unprovenCommands } from './documented-commands.ts'
import { exists, filesUnder, readText } from './repository.ts'

const proofs: Proof[] = [
  { command: /npm (start|run dev -- hello\.ts)/, runBy: 'test/readme/commands.test.ts' },
  ...['docs/quick-start.md', 'docs/calling-agents.md', 'docs/usage.md'].map(document => ({
    document,
    command: /([A-Z]+=\$\()?curl [\s\S]*|npx rivulet .*/,
    runBy: 'test/readme/commands.test.ts',
  })),
  ...['docs/writing-agents.md', 'examples/README.md'].map(document => ({
    document,
    command: /npm (start|run worker) -- .*|curl .*/,
    runBy: 'test/readme/writing-agents.test.ts',
  })),
  { document: 'docs/python.md', command: 'pip install ./sdks/python', runBy: 'test/readme/python.test.ts' },
  { document: 'docs/worker-protocol.md', command: /[\s\S]*/, runBy: 'test/readme/worker-protocol.test.ts' },
  { command: 'npm run check', runBy: '.ci/run' },
  { command: 'npm test', runBy: '.ci/run' },
]

test('every command in the documents is run by a test, and every test of a command has a document that shows it', () => {
  expect(unprovenCommands(shownCommands(), proofs)).toEqual([])
})

test('the file that is said to run a command exists', () => {
  expect(proofs.filter(({ runBy }) => !exists(runBy))).toEqual([])
})

describe('what a document shows', () => {
  test('each line of a shell block is a command; prose and other languages are not', () => {
    const markdown = '`npm ci` first.\n\n```sh\nnpm start\nnpm test\n```\n\n```ts\nimport x\n```\n\n~~~bash\ncurl localhost\n~~~\n'
    expect(commandsOf(markdown)).toEqual(['npm start', 'npm test', 'curl localhost'])
  })

  test('comments, prompts and blank lines are no part of a command', () => {
    expect(commandsOf(sh('# first', '', '$ npm start   # and wait', 'echo a#b'))).toEqual(['npm start', 'echo a#b'])
  })

  test('a command goes on over a backslash and inside quotes', () => {
    expect(commandsOf(sh('curl -N \\', '  localhost', `curl -d '{`, `  "#": 1`, `}' localhost`, 'npm test'))).toEqual([
      'curl -N localhost',
      `curl -d '{\n  "#": 1\n}' localhost`,
      'npm test',
    ])
  })

  test('an escaped quote does not open a quotation', () => {
    expect(commandsOf(sh(`echo it\\'s`, 'echo "a \\" # b"', 'npm test'))).toEqual([`echo it\\'s`, 'echo "a \\" # b"', 'npm test'])
  })

  test('a block in a list is read without its indent, and one that is never closed is read to the end', () => {
    expect(commandsOf('- so:\n  ```sh\n  npm start\n  ```\n\n```sh\nnpm test')).toEqual(['npm start', 'npm test'])
  })

  test('a fence inside a longer fence is text', () => {
    expect(commandsOf('````md\n```sh\nnpm start\n```\n````\n')).toEqual([])
  })
})

describe('proof', () => {
  const shown = [{ document: 'README.md', command: 'npm start' }]

  test('a command that no test runs', () => {
    expect(unprovenCommands(shown, [])).toEqual(['README.md shows a command that no test runs: npm start'])
  })

  test('a test of a command that no document shows', () => {
    const proofs = [
      { command: 'npm start', runBy: 'a.test.ts' },
      { command: /npm run .*/, runBy: 'b.test.ts' },
    ]
    expect(unprovenCommands(shown, proofs)).toEqual(['no document shows the command that b.test.ts runs: /npm run .*/'])
  })

  test('a proof for one document speaks for no other', () => {
    const proof = { command: 'npm start', runBy: 'a.test.ts' }
    expect(unprovenCommands(shown, [{ ...proof, document: 'README.md' }])).toEqual([])
    expect(unprovenCommands(shown, [{ ...proof, document: 'docs/other.md' }])).toHaveLength(2)
  })

  test('a pattern speaks for whole commands only', () => {
    expect(unprovenCommands(shown, [{ command: /npm \w+/, runBy: 'a.test.ts' }])).toEqual([])
    expect(unprovenCommands(shown, [{ command: /npm/, runBy: 'a.test.ts' }])).toHaveLength(2)
  })
})

function shownCommands() {
  const documents = [
    ...['README.md', 'examples/README.md'],
    ...filesUnder('docs').filter(path => /^docs\/[^/]+\.md$/.test(path)),
    ...filesUnder('packages').filter(path => /^packages\/[^/]+\/README\.md$/.test(path)),
  ]
  return documents.flatMap(document => commandsOf(readText(document)).map(command => ({ document, command })))
}

function sh(...lines: string[]): string {
  return ['```sh', ...lines, '```', ''].join('\n')
}
