import { scriptedModel } from '@rivulet/agent'
import { testTurn } from '@rivulet/worker/testing'
import { describe, expect, test } from 'vitest'
import { nothing } from './offline-scout.ts'
import { createResearcher, researchOffline } from './researcher.ts'

const model = scriptedModel(researchOffline, { chunks: 'words' })
const agent = createResearcher({})

describe('the researcher without a model', () => {
  test('sends a scout to each page, and reports what they found', async () => {
    const sent: unknown[] = []
    const { status, messages } = await testTurn(agent, {
      ...{ model, input: 'slow viewers?' },
      child: ({ agent: name, input }) => {
        sent.push([name, input])
        return { text: sent.length === 2 ? nothing : `report ${sent.length}` }
      },
    })
    expect(status).toBe('completed')
    const pages = ['README.md', 'docs/what-happens-when.md', 'docs/writing-agents.md']
    expect(sent).toEqual(pages.map(page => ['scout', `slow viewers?\nPage: ${page}`]))
    expect(messages.at(-1)?.content).toMatchObject({ text: 'report 1\n\nreport 3' })
  })

  test.each([
    ['', 'Ask me something'],
    ['Zebras!', 'found nothing'],
  ])('has something to say to %j', async (input, words) => {
    const { messages } = await testTurn(agent, { model, input, child: () => ({ text: nothing }) })
    expect(messages.at(-1)?.content).toMatchObject({ text: expect.stringContaining(words) })
  })
})

test('it tells callers what it is', () => {
  expect(createResearcher({})).toMatchObject({ name: 'researcher', description: expect.any(String) })
})
