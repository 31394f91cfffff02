/** An agent that calls functions instead of yielding: by itself, by hand, to several places at once. What was sent is what is stored. */
import { data, delta, done, start, type Turn, text, toolRequest, type Update } from '@rivulet/protocol'
import { type AgentHandler, type AutoSent, defineAgent, type Message } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const chunks = ['The ', 'answer ', 'is 42.']

describe('auto send', () => {
  test('opens, streams and closes by itself, and returns the stored messages', async () => {
    let sent: AutoSent | undefined
    const { task, messages } = await run('auto', async turn => {
      sent = await turn.autoSend(chunks.map(chunk => delta(0, chunk)))
    })
    expect(sent).toMatchObject({ text: 'The answer is 42.', stopReason: 'stop' })
    expect(messages.map(contentOf)).toEqual(sent?.messages.map(contentOf))
    const types = (await platform.log(task)).map(({ event }) => event.type).filter(type => type.startsWith('message.'))
    expect(types[0]).toBe('message.started')
    expect(types.filter(type => type === 'message.delta').length).toBeGreaterThan(0)
    expect(types.at(-1)).toBe('message.finished')
    expect(types.filter(type => type !== 'message.delta')).toEqual(['message.started', 'message.finished'])
  })

  test('packs what was streamed as what it is', async () => {
    const { messages } = await run('packing', turn =>
      turn
        .autoSend([
          ...[delta(0, 'words'), delta(1, { type: 'data_json', text: '{"a":' }), delta(1, { type: 'data_json', text: '1}' })],
          ...[{ type: 'start', index: 2, content: toolRequest('c', 'add') } as const, delta(2, { type: 'tool_request', text: '{"b":2}' })],
        ])
        .then(() => {}),
    )
    expect(messages.map(({ content }) => content)).toEqual([text('words'), data({ a: 1 }), toolRequest('c', 'add', { b: 2 })])
  })

  test('closes the stream that it was given when the turn is canceled', async () => {
    let isClosed = false
    let hasBegun = false
    async function* endless(): AsyncGenerator<Update> {
      try {
        for (;;) {
          hasBegun = true
          yield delta(0, 'more ')
          await new Promise(resolve => setTimeout(resolve, 5))
        }
      } finally {
        isClosed = true
      }
    }
    await startOwnWorker(platform, [defineAgent('endless', turn => turn.autoSend(endless()).then(() => {}))])
    const { task } = await platform.client.createTask({ agent: 'endless', maxAttempts: 1 })
    await until('the agent speaks', () => hasBegun)
    await platform.client.cancel(task.id)
    await until('its stream is closed', () => isClosed)
    expect((await platform.client.detail(task.id)).task.status).toBe('canceled')
  })
})

describe('by hand', () => {
  test('a message is open while its scope runs, and what is stored is what was sent', async () => {
    const { task, messages } = await run('by-hand', turn =>
      turn.message(text(), async message => {
        for (const chunk of chunks) await message.append(chunk.toUpperCase())
        expect(message.current()).toMatchObject({ index: message.index, status: 'streaming', content: text('THE ANSWER IS 42.') })
      }),
    )
    expect(messages).toMatchObject([{ status: 'complete', content: text('THE ANSWER IS 42.') }])
    const log = (await platform.log(task)).map(({ event }) => event)
    expect(new Set(log.flatMap(event => (event.type === 'message.delta' ? [event.index] : [])))).toEqual(new Set([messages[0]?.index]))
    expect(log.filter(({ type }) => type === 'message.finished')).toHaveLength(1)
  })

  test('a message may be of the system instead of the agent, also in a step, after a park and in a later attempt', async () => {
    const { messages, turns } = await run(
      'announcing',
      async turn => {
        const notice = (words: string) => turn.message(text(words), { author: 'system' }, async () => {})
        await notice('Maintenance at noon.')
        await turn.step('a step', () => notice('The step began.'))
        await turn.ask('go', { title: 'Go?', hold: 0, expiresIn: '300ms', onExpire: 'decline' })
        if (turn.attempt === 1) throw new Error('not yet')
        await turn.autoSend([start(0, text('Almost.'), {}, 'system'), delta(1, 'Done.')])
      },
      2,
    )
    expect(turns.map(({ attempt }) => attempt)).toEqual([2])
    expect(messages.map(({ author, content }) => [author, content.type === 'text' && content.text])).toEqual([
      ['system', 'Maintenance at noon.'],
      ['system', 'The step began.'],
      ['system', 'Almost.'],
      ['agent', 'Done.'],
    ])
  })

  test('a message cannot be of the user, because those are inputs', async () => {
    const { messages } = await run('pretending', async turn => {
      expect(() => turn.message(text('I agree.'), { author: 'user' as never })).toThrow('author')
      await turn.send('I ask.')
    })
    expect(messages).toMatchObject([{ author: 'agent', content: text('I ask.') }])
  })

  test('the same chunks go to several places', async () => {
    const counted: number[] = []
    const { messages } = await run('several', async turn => {
      const loud = turn.message(text())
      const plain = turn.message(text())
      for (const chunk of chunks) {
        await Promise.all([loud.append(chunk.toUpperCase()), plain.append(chunk)])
        counted.push(chunk.length)
      }
    })
    expect(messages.map(({ content }) => content)).toEqual([text('THE ANSWER IS 42.'), text('The answer is 42.')])
    expect(counted).toEqual(chunks.map(({ length }) => length))
  })

  test('a message that was closed by hand is not closed again by its scope', async () => {
    const { task } = await run('twice', turn =>
      turn.message(text('a'), async message => {
        await message.append('b')
        await message.finish({ stopReason: 'length' })
      }),
    )
    const ends = (await platform.log(task)).flatMap(({ event }) => (event.type === 'message.finished' ? [event] : []))
    expect(ends).toMatchObject([{ status: 'complete', stopReason: 'length' }])
    expect((await platform.client.messages(task)).map(({ content }) => content)).toEqual([text('ab')])
  })
})

test('a turn without viewers is complete, and stored', async () => {
  const say: AgentHandler = async turn => {
    await turn.autoSend([...chunks.map(chunk => delta(0, chunk)), done(0)])
  }
  const unseen = await run('unseen', say)
  expect(unseen.messages).toMatchObject([{ status: 'complete', content: text('The answer is 42.') }])
})

/** What an agent of this test's own says in a turn, when it is stored. */
async function run(agent: string, handler: AgentHandler, maxAttempts = 1): Promise<{ task: string; turns: Turn[]; messages: Message[] }> {
  await startOwnWorker(platform, [defineAgent(agent, handler)])
  const { task, turns, messages } = await platform.client.finishedTask({ agent, maxAttempts })
  expect(turns).toMatchObject([{ status: 'completed' }])
  expect(await faultsOf(platform, task.id)).toEqual([])
  return { task: task.id, turns, messages }
}

function contentOf({ index, status, content }: Message): object {
  return { index, status, content }
}
