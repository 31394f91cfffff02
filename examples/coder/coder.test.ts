import { testTurn } from '@rivulet/worker/testing'
import { expect, test } from 'vitest'
import coder from './coder.ts'

test('the agent asks before it writes, edits and runs, and not before it reads', async () => {
  const { status, waits, messages } = await testTurn(coder, { input: 'Print 42', answer: () => ({}) })
  expect(status).toBe('completed')
  expect(waits.map(({ kind, tool }) => [kind, tool])).toEqual([
    ['approval', 'write'],
    ['approval', 'edit'],
    ['approval', 'bash'],
  ])
  const results = messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content.content] : []))
  expect(results).toMatchObject([/^wrote/, 'edited sum.sh', { code: 0, output: '42\n' }, 'echo $((40 + 2))\n'].map(matching))
})

test('a command that a person declines does not run, and the model reads why', async () => {
  const { messages } = await testTurn(coder, {
    input: 'Print 42',
    answer: ({ tool }) => (tool === 'bash' ? { action: 'decline', comment: 'not on my machine' } : {}),
  })
  expect(messages.map(({ content }) => content)).toContainEqual(
    expect.objectContaining({ type: 'tool_response', name: 'bash', content: 'Declined: not on my machine', isError: true }),
  )
})

function matching(expected: unknown): unknown {
  return expected instanceof RegExp ? expect.stringMatching(expected) : expected
}
