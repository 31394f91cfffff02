import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from './tool.ts'

const common = { name: 'f', description: 'does', run: () => null }

describe('a tool', () => {
  test('is described to models by the schema of its input', () => {
    const tool = defineTool({ ...common, input: z.object({ path: z.string().describe('where'), deep: z.boolean().default(false) }) })
    expect(tool.parameters).toEqual({
      type: 'object',
      properties: { path: { type: 'string', description: 'where' }, deep: { type: 'boolean', default: false } },
      required: ['path'],
    })
  })

  test('receives the parsed output of its schema, typed', async () => {
    const tool = defineTool({ ...common, input: z.object({ n: z.number().default(3) }), run: ({ n }) => n.toFixed(1) })
    const checked = await tool.check({})
    expect(checked.isValid && checked.run({ signal: new AbortController().signal, callId: 'a', progress: () => {} })).toBe('3.0')
    expect(await tool.check({ n: 'x' })).toMatchObject({ isValid: false, reason: expect.stringContaining('expected number') })
  })

  test.each([
    ['a name that providers reject', () => defineTool({ ...common, name: 'a b', input: z.object({}) }), 'Tool "a b": name must be 1 to 64'],
    ['an input that is not an object', () => defineTool({ ...common, input: z.string() }), 'input must be an object schema'],
    [
      'an input without a JSON schema',
      () => defineTool({ ...common, input: z.object({ n: z.bigint() }) }),
      'cannot be converted to a JSON schema',
    ],
  ])('is rejected at once with %s', (_, define, reason) => {
    expect(define).toThrow(reason)
  })
})
