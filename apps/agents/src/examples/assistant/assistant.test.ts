import { runAgent, scriptedModel, user } from '@rivulet/agent'
import { describe, expect, test } from 'vitest'
import { createAssistantTools } from './assistant-tools.ts'
import { offlineReply } from './offline-replies.ts'

const tools = createAssistantTools({ now: () => new Date('2030-01-01T12:00:00Z') })
const model = scriptedModel(offlineReply, { chunks: 'words' })

describe('the assistant without a model', () => {
  test.each([
    ['What time is it?', 'It is Tuesday, 1 January 2030 at 12:00 (UTC).', ['current_time']],
    ['And the time in Europe/Paris, please?', 'It is Tuesday, 1 January 2030 at 13:00 (Europe/Paris).', ['current_time']],
    ['What is 12 * (3 + 4)?', '12 * (3 + 4) = 84.', ['calculate']],
    ['How much is -2 + 5, today?', 'It is Tuesday, 1 January 2030 at 12:00 (UTC). -2 + 5 = 3.', ['current_time', 'calculate']],
    ['1/0', 'That did not work: The result is not finite.', ['calculate']],
    ['The time in Nowhere/Nothing?', 'That did not work: Invalid time zone specified: Nowhere/Nothing.', ['current_time']],
  ])('replies to %j with its tools', async (question, answer, names) => {
    const result = await runAgent({ model, tools, messages: [user(question)] }).result
    expect(result).toMatchObject({ text: answer, stopReason: 'stop', steps: 2 })
    expect(result.toolCalls.map(({ name }) => name)).toEqual(names)
  })

  test.each(['Tell me about the sea.', 'Call 555-0199 in 2024', 'In version 1.2.3 of 2030'])(
    'has something to say to %j',
    async question => {
      const { text } = await runAgent({ model, tools, messages: [user(question)] }).result
      expect(text.length).toBeGreaterThan(5)
    },
  )

  test('greets a user that says nothing', async () => {
    expect((await runAgent({ model, tools, messages: [] }).result).text).toContain('Hello')
  })

  test('looks at the latest question only', async () => {
    const first = await runAgent({ model, tools, messages: [user('What is 2 + 2?')] }).result
    const again = await runAgent({ model, tools, messages: [user('What is 2 + 2?'), ...first.messages, user('Thanks!')] }).result
    expect(again).toMatchObject({ steps: 1, text: expect.stringContaining('Thanks!') })
  })
})
