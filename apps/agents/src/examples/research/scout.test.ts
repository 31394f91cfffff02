import { runAgent, scriptedModel, user } from '@rivulet/agent'
import { describe, expect, test } from 'vitest'
import { scoutOffline } from './offline-scout.ts'
import { createResearchTools } from './research-tools.ts'
import { createScout } from './scout.ts'

const tools = createResearchTools({ paceMs: 1 })
const model = scriptedModel(scoutOffline, { chunks: 'words' })

describe('the scout without a model', () => {
  test('searches for each part, reads what was found, and reports it', async () => {
    const question = user('What happens to slow viewers, and how are failed attempts retried?')
    const result = await runAgent({ model, tools, messages: [question] }).result
    expect(result).toMatchObject({ steps: 3, stopReason: 'stop' })
    const names = result.toolCalls.map(({ name }) => name)
    expect(names.slice(0, 2)).toEqual(['search_notes', 'search_notes'])
    expect(new Set(names.slice(2))).toEqual(new Set(['read_note']))
    expect(result.text).toContain('Slow viewers: Each API process')
    expect(result.text).toContain('Failed attempts: A turn whose handler throws')
    expect(result.messages.filter(({ content }) => content.type === 'reasoning')).toHaveLength(3)
  })

  test('reads side by side, and shows how far each call is', async () => {
    const open = new Set<number>()
    let mostOpen = 0
    const progress: unknown[] = []
    const run = runAgent({ model, tools, messages: [user('log, cancel')] })
    for await (const update of run) {
      if (update.type === 'start' && update.content.type === 'tool_response') open.add(update.index)
      if (update.type === 'full') open.delete(update.index)
      if (update.type === 'delta' && update.delta.type === 'data') progress.push(update.delta.value)
      mostOpen = Math.max(mostOpen, open.size)
    }
    expect(mostOpen).toBeGreaterThan(1)
    expect(progress).toContainEqual({ read: 2, of: 3 })
  })

  test.each([
    ['', 'Ask me something'],
    ['Zebras!', 'found nothing'],
  ])('has something to say to %j', async (question, words) => {
    expect((await runAgent({ model, tools, messages: [user(question)] }).result).text).toContain(words)
  })

  test('reads the notes of one page if it was given one', async () => {
    const { toolCalls, text } = await runAgent({ model, tools, messages: [user('cancel, log\nPage: README.md')] }).result
    expect(toolCalls.filter(({ name }) => name === 'search_notes')).toHaveLength(2)
    expect(text).toContain('One log per task')
    expect(text).not.toContain('Cancel is a fence')
  })

  test('begins anew with each question', async () => {
    const first = await runAgent({ model, tools, messages: [user('cancel')] }).result
    const messages = [user('cancel'), ...first.messages, user('slow viewers')]
    expect(await runAgent({ model, tools, messages }).result).toMatchObject({ steps: 3, text: expect.stringContaining('Slow viewers') })
  })
})

test('reading a note that is not there is an error that a model can act on', async () => {
  const lost = scriptedModel([[{ type: 'call', name: 'read_note', json: '{"id":"x"}' }], 'Then not.'])
  const { messages } = await runAgent({ model: lost, tools, messages: [user('x')] }).result
  expect(messages.find(({ content }) => content.type === 'tool_response')?.content).toMatchObject({
    isError: true,
    content: 'No note with the id x. Search for one first.',
  })
})

test('it tells callers what it is', () => {
  expect(createScout({})).toMatchObject({ name: 'scout', description: expect.any(String) })
})
