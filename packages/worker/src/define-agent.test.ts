/** What can be declared as an agent, and run beside others. */
import { text } from '@rivulet/protocol'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { type AgentHandler, defineAgent } from './define-agent.ts'
import type { Turn } from './turn/turn.ts'
import { createWorker } from './worker.ts'

const silence = async () => {}

async function* contents() {
  yield text('hello')
}

test('a name is of the letters that fit a URL and a queue, and not too long', () => {
  expect(defineAgent('my-agent_2', silence, { description: 'Says nothing' })).toMatchObject({
    name: 'my-agent_2',
    description: 'Says nothing',
  })
  for (const name of ['', 'Echo', 'a b', 'a:b', 'é', 'x'.repeat(65), undefined as never])
    expect(() => defineAgent(name, silence)).toThrow(
      expect.objectContaining({ code: 'validation_failed', message: expect.stringContaining('Use 1 to 64 characters of a-z') }),
    )
})

test('a description is what a server takes: not too long, and without half characters', () => {
  expect(defineAgent('a', silence, { description: `${'x'.repeat(998)}\0\ud83d` }).description).toBe(`${'x'.repeat(998)}\ufffd\ufffd`)
  expect(() => defineAgent('a', silence, { description: 'x'.repeat(1_001) })).toThrow(
    expect.objectContaining({ code: 'validation_failed', message: expect.stringContaining('description of agent a') }),
  )
})

test('what is no function cannot handle a turn', () => {
  for (const run of [undefined, 'run', silence()])
    expect(() => defineAgent('a', run as never)).toThrow(
      expect.objectContaining({ code: 'validation_failed', message: expect.stringContaining('needs a function') }),
    )
})

test('a worker refuses two agents of one name, before it connects to anything', () => {
  const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
  const agents = [defineAgent('a', silence), defineAgent('b', silence), defineAgent('a', silence)]
  expect(() => createWorker({ agents, redisUrl: 'redis://127.0.0.1:1', url: 'http://127.0.0.1:1', log })).toThrow('Two agents are named a')
})

test('a handler that returns something, or is no async function, is a type error', () => {
  const wrong = [
    // @ts-expect-error: an agent returns nothing
    () => defineAgent('a', async () => 'hello'),
    // @ts-expect-error: also not the handle of what it sent
    () => defineAgent('a', async (turn: Turn) => turn.send('hello')),
    // @ts-expect-error: a generator of updates is asynchronous
    () => defineAgent('a', function* () {}),
    // @ts-expect-error: what is yielded is an update
    () => defineAgent('a', contents),
    // @ts-expect-error: an agent has a handler
    () => defineAgent('a'),
  ]
  const right: AgentHandler[] = [silence, async function* () {}]
  expect(wrong).toHaveLength(5)
  expect(right).toHaveLength(2)
})

describe('an agent with params', () => {
  const params = z.object({ city: z.string(), days: z.number().int().default(3) })
  const skills = [{ id: 'rain', name: 'Rain', description: 'Tells whether it rains' }]
  const turnWith = (given: unknown) => ({ params: given }) as Turn

  test('announces their schema and its defaults, and gets them checked and filled in', async () => {
    const seen: unknown[] = []
    const agent = defineAgent({
      name: 'weather',
      description: 'Tells the weather',
      params,
      maxAttempts: 5,
      timeoutMs: 1_000,
      concurrency: 2,
      skills,
      inputModes: ['text/plain'],
      run: async turn => {
        expectTypeOf(turn.params).toEqualTypeOf<{ city: string; days: number }>()
        seen.push(turn.params)
      },
    })
    expect(agent).toMatchObject({
      concurrency: 2,
      settings: {
        maxAttempts: 5,
        timeoutMs: 1_000,
        skills,
        inputModes: ['text/plain'],
        params: { type: 'object', required: ['city'], properties: { days: { default: 3 } } },
      },
    })
    await agent.run(turnWith({ city: 'Oslo' }))
    expect(seen).toEqual([{ city: 'Oslo', days: 3 }])
    for (const wrong of [null, {}, { city: 1 }])
      expect(() => agent.run(turnWith(wrong))).toThrow(expect.objectContaining({ code: 'validation_failed' }))
  })

  test('and what it accepts announces both, and gets its params without what the request asks for', async () => {
    const seen: unknown[] = []
    const agent = defineAgent({
      ...{ name: 'weather', params, accepts: { format: true, tools: true } },
      run: async ({ params, requested: { tools = [], ...requested } }) =>
        void seen.push(
          params,
          requested,
          tools.map(({ name }) => name),
        ),
    })
    const named = ['city', 'days', 'format', 'tool_choice', 'tools']
    expect(agent.settings).toMatchObject({ accepts: { format: true, tools: true }, params: { additionalProperties: false } })
    expect(Object.keys(Object(agent.settings.params?.properties)).sort()).toEqual(named)
    const schema = { type: 'object' }
    const format = { type: 'json_schema', name: 'x', schema }
    const choice = { type: 'function', name: 'gps' }
    await agent.run(turnWith({ city: 'Oslo', format, tools: [{ type: 'function', name: 'gps' }], tool_choice: choice }))
    expect(seen).toEqual([{ city: 'Oslo', days: 3 }, { schema, toolChoice: { name: 'gps' } }, ['gps']])
  })

  test('without a schema takes any params, and announces nothing', async () => {
    const agent = defineAgent({ name: 'a', run: async turn => expectTypeOf(turn.params).toEqualTypeOf<Turn['params']>() as never })
    expect(agent.settings).toEqual({})
    await agent.run(turnWith([1]))
  })

  test.each([
    ['params', { params: z.object({ at: z.date() }) }],
    ['skills', { skills: [] }],
    ['inputModes', { inputModes: ['text'] }],
    [
      'params',
      {
        params: z.object({
          get self() {
            return z.object({ again: z.lazy(() => params) })
          },
          long: z.string().describe('x'.repeat(20_000)),
        }),
      },
    ],
    ['concurrency', { concurrency: 0 }],
    ['maxAttempts', { maxAttempts: 0 }],
    ['timeoutMs', { timeoutMs: 1.5 }],
  ])('is refused for %s that no server takes', (field, options) => {
    expect(() => defineAgent({ name: 'a', run: silence, ...options } as never)).toThrow(
      expect.objectContaining({ code: 'validation_failed', message: expect.stringContaining(field) }),
    )
  })
})
