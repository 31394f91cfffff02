import { expect, test } from 'vitest'
import { clientTools } from './client-tools.ts'

test("the tools of a caller are tools that its client runs, in AG-UI's and in OpenAI's form", async () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tools = clientTools([
    { name: 'locate', description: 'Where the user is', parameters },
    { type: 'function', name: 'confirm', strict: true, parameters: null },
  ])
  expect(tools).toMatchObject([
    { name: 'locate', description: 'Where the user is', where: 'client', parameters },
    { name: 'confirm', description: '', where: 'client', parameters: { type: 'object' } },
  ])
  for (const tool of tools) {
    // The client checks the arguments against its schema, so any are valid here, and this process has no result for them.
    const checked = await tool.check({ city: 1 })
    if (!checked.isValid) expect.fail(checked.reason)
    expect(() => checked.run({ signal: new AbortController().signal, callId: 'c', progress: () => {} })).toThrow(
      expect.objectContaining({ code: 'bad_call' }),
    )
  }
  expect([clientTools(undefined), clientTools(null)]).toEqual([[], []])
})

test.each([
  ['what is not a list', { name: 'f' }, 'must be a list'],
  ['a tool without a name', [{ description: 'x' }], 'must have a name'],
  ['a name that providers reject', [{ name: 'a b' }], 'name must be 1 to 64'],
])('%s is rejected', (_, given, reason) => {
  expect(() => clientTools(given)).toThrow(reason)
})
