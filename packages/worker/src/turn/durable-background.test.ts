/** Compactions and tools in the background, in a turn that is tried again: what was done is not repeated, and the model is shown the same. */
import { call, defineTool, scriptedModel, user } from '@rivulet/agent'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent } from '../define-agent.ts'
import { testTurn } from '../testing/test-turn.ts'

test('an attempt after a failure repeats no compaction and no tool in the background, and ends with the same messages', async () => {
  const done = { compactions: 0, tools: 0 }
  let finish = () => {}
  const slow = defineTool({
    ...{ name: 'slow', description: '', input: z.object({}), background: true },
    run: async () => {
      done.tools += 1
      await new Promise<void>(resolve => (finish = resolve))
      return 'the result'
    },
  })
  const model = scriptedModel([
    [call('slow', {}, 'c1')],
    () => {
      finish()
      return 'Meanwhile.'
    },
    'Now I know.',
  ])
  const agent = defineAgent('tried', async turn => {
    await turn.run({
      ...{ model, tools: [slow] },
      compaction: {
        when: messages => messages.length === 3,
        run: async () => {
          done.compactions += 1
          return [user('a summary')]
        },
      },
    })
    if (turn.attempt < 3) throw new Error('not yet')
  })
  const { status, messages, error } = await testTurn(agent, { input: 'go', attempts: 3 })
  expect({ status, error, ...done, responses: model.calls }).toEqual({ status: 'completed', compactions: 2, tools: 1, responses: 3 })
  expect(messages.map(({ content }) => content.type)).toEqual(['tool_request', 'tool_response', 'text', 'data', 'text'])
})
