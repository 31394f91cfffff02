import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findNotes, notes, sentencesOf } from './library.ts'

const root = new URL('../../../../..', import.meta.url)

test.each(notes.map(note => [note.title, note]))('%s: has a page to point at, and can be found', (title, note) => {
  expect(existsSync(new URL(note.source, root))).toBe(true)
  expect(findNotes(title)[0]).toBe(note)
  expect(sentencesOf(note.text).length).toBeGreaterThan(1)
})

test('no two notes share an id', () => {
  expect(new Set(notes.map(({ id }) => id)).size).toBe(notes.length)
})

test('what is found is the best first, and no more than asked for', () => {
  const found = findNotes('What happens to a viewer who is slow when a worker crashed and its lease ended?', { limit: 2 })
  expect(found.map(({ id }) => id).sort()).toEqual(['crash', 'viewers'])
})

test.each(['', 'What is the?', 'Zebras!'])('nothing is found for %j', query => {
  expect(findNotes(query)).toEqual([])
})
