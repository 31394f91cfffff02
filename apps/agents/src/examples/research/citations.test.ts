import { expect, test } from 'vitest'
import { addSources } from './citations.ts'
import type { Note } from './library.ts'

const [first, second, third] = ['a', 'b', 'c'].map(id => ({ id, title: id.toUpperCase(), source: `${id}.md`, text: '' })) as [
  Note,
  Note,
  Note,
]
const offered = [first, second, third]

test('marks are numbered as they appear, and their notes listed once each', () => {
  expect(addSources('One [3]. Two[1]. Three [3].', offered)).toEqual({
    markdown: 'One [[1]](c.md). Two [[2]](a.md). Three [[1]](c.md).\n\nSources:\n\n1. [C](c.md)\n2. [A](a.md)',
    sources: [
      { number: 1, title: 'C', url: 'c.md' },
      { number: 2, title: 'A', url: 'a.md' },
    ],
  })
})

test('a mark without a note is taken out', () => {
  expect(addSources('Sure [7], really [0].', offered)).toEqual({ markdown: 'Sure, really.', sources: [] })
})

test('an answer without marks, and links of its own, stay as they are', () => {
  const answer = 'Nothing to cite, see [1](elsewhere.md).\n'
  expect(addSources(answer, offered)).toEqual({ markdown: answer, sources: [] })
})
