import { mkdtemp, readFile, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { call, runAgent, scriptedModel, user } from '@rivulet/agent'
import { testTurn } from '@rivulet/worker/testing'
import { expect, test } from 'vitest'
import coder from './coder.ts'
import { createCodingTools } from './workspace.ts'

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

test.each([
  ['../outside.txt', 'above the folder'],
  ['/etc/passwd', 'an absolute path'],
  ['link/passwd', 'a link that leads out'],
  ['link/new.txt', 'a new file behind such a link'],
])('no tool reaches %s: %s', async path => {
  const folder = await mkdtemp(join(tmpdir(), 'coder-'))
  await symlink('/etc', join(folder, 'link'))
  const calls = [call('read', { path }), call('write', { path, content: 'x' }), call('edit', { path, old: 'a', new: 'b' })]
  const { messages } = await runAgent({
    model: scriptedModel([calls, 'Done.']),
    tools: await createCodingTools(folder),
    messages: [user('go')],
  }).result
  const results = messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
  expect(results).toMatchObject(calls.map(() => ({ isError: true, content: expect.stringContaining('outside the folder') })))
})

test('a command has no variables of the worker, and ends with its turn', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'coder-'))
  const model = scriptedModel([[call('bash', { command: 'env | grep -c npm_ > count.txt; pwd' })], 'Done.'])
  await runAgent({ model, tools: await createCodingTools(folder), messages: [user('go')] }).result
  expect((await readFile(join(folder, 'count.txt'), 'utf8')).trim()).toBe('0')
})

function matching(expected: unknown): unknown {
  return expected instanceof RegExp ? expect.stringMatching(expected) : expected
}
