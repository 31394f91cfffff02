import { scriptedModel, user } from '@rivulet/agent'
import { expect, test } from 'vitest'
import { addSources } from './citations.ts'
import { citeOffline, createCited } from './cited.ts'
import { findNotes } from './library.ts'

test('without a model, what it says cites notes that fit the question', async () => {
  const question = 'What happens to a slow viewer?'
  const { text } = await scriptedModel(citeOffline).stream({ messages: [user(question)] }).result
  expect(text).toContain('Each API process reads a log once for all its viewers. [1]')
  expect(addSources(text, findNotes(question)).sources[0]).toEqual({ number: 1, title: 'Slow viewers', url: 'README.md' })
})

test('without a model and without a note that fits, it says so and cites nothing', async () => {
  const { text } = await scriptedModel(citeOffline).stream({ messages: [user('Zebras!')] }).result
  expect(text).toContain('nothing about that')
  expect(addSources(text, []).sources).toEqual([])
})

test('it tells callers what it is', () => {
  expect(createCited({})).toMatchObject({ name: 'cited', description: expect.stringContaining('sources') })
})
