/** What can be declared as an agent, and run beside others. */
import { text } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { type AgentHandler, defineAgent } from './define-agent.ts'
import type { Turn } from './turn.ts'
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
