/** What is written from the tables in the code is up to date. `npm run generate` writes it. */
import { expect, test } from 'vitest'
import { generatedFiles } from '../../scripts/generated/files.ts'
import { withBlock } from '../../scripts/generated/marked-block.ts'
import { readText } from './repository.ts'

test.each(Object.entries(generatedFiles))('%s is what `npm run generate` writes', (path, contentOf) => {
  const content = readText(path)
  expect(content).toBe(contentOf(content))
})

test('a page without a place for a table is rejected', () => {
  expect(() => withBlock('# Operations', 'variables', 'a table')).toThrow(/no place/)
})
