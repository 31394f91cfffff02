import type { Update } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect } from '../../test/collect.ts'
import { user } from '../model/conversation.ts'
import type { SpokenMessage } from '../model/model.ts'
import { call, say } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool } from '../tools/tool.ts'
import type { Observer, ObserverFailurePolicy } from './observers.ts'
import { runAgent } from './run-agent.ts'

const tick = defineTool({ name: 'tick', description: '', input: z.object({}), run: () => 'tock' })

describe('observers', () => {
  test('are called in list order with every update, before any reader receives it', async () => {
    const calls: string[] = []
    const seen: Update[] = []
    const second = (update: Update) => {
      calls.push(`second ${update.type}`)
      seen.push(update)
    }
    const run = watched([update => calls.push(`first ${update.type}`), second])
    let read = 0
    for await (const update of run) {
      read += 1
      expect(seen).toContain(update)
    }
    expect(seen).toHaveLength(read)
    expect(calls).toEqual(seen.flatMap(({ type }) => [`first ${type}`, `second ${type}`]))
  })

  test('all receive the same updates', async () => {
    const one: Update[] = []
    const two: Update[] = []
    const { updates } = await collect(watched([update => one.push(update), { update: update => two.push(update) }]))
    expect(one).toEqual(updates)
    expect(two).toEqual(updates)
  })

  test('cannot change an update or a message', async () => {
    const refused: unknown[] = []
    const meddle = (value: object, change: object) => {
      try {
        Object.assign(value, change)
      } catch (error) {
        refused.push(error)
      }
    }
    const meddler: Observer = {
      update: update => {
        meddle(update, { index: 99 })
        if (update.type === 'delta') meddle(update.delta, { text: 'no' })
      },
      message: message => meddle(message.content, { type: 'data' }),
    }
    const { result, updates } = await collect(watched([meddler]))
    const deltas = updates.filter(({ type }) => type === 'delta').length
    expect(refused).toHaveLength(updates.length + deltas + (result?.messages.length ?? 0))
    expect(refused.every(error => error instanceof TypeError)).toBe(true)
    expect(result?.text).toBe('Done.')
  })

  test('can receive each whole message once, when it closes', async () => {
    const messages: SpokenMessage[] = []
    const { result } = await collect(watched([{ message: message => messages.push(message) }]))
    expect(messages).toEqual(result?.messages)
  })

  test('are notified once when the run is over, however it ends', async () => {
    let ends = 0
    await collect(watched([{ end: () => (ends += 1) }]))
    await collect(runAgent({ model: scriptedModel([]), messages: [], observers: [{ end: () => (ends += 1) }] }))
    expect(ends).toBe(2)
  })
})

describe('an observer that fails', () => {
  const failing: Observer = {
    update: update => {
      if (update.type === 'done') throw new Error(`no ${update.index}`)
    },
  }

  test('is ignored by default, and the others are still called', async () => {
    const seen: Update[] = []
    const { result, updates } = await collect(watched([failing, update => seen.push(update)]))
    expect(result).toMatchObject({ stopReason: 'stop' })
    expect(result).not.toHaveProperty('observerErrors')
    expect(seen).toEqual(updates)
  })

  test('is logged under the log policy; a log that throws is ignored', async () => {
    const logged: unknown[] = []
    const log = (error: unknown) => {
      logged.push(error)
      throw new Error('disk full')
    }
    const { result } = await collect(watched([failing], { log }))
    expect(logged).toMatchObject([{ message: 'no 0' }, { message: 'no 1' }, { message: 'no 3' }])
    expect(result?.stopReason).toBe('stop')
  })

  test('is collected under the policy collect', async () => {
    const { result } = await collect(watched([failing], 'collect'))
    expect(result?.observerErrors).toHaveLength(3)
  })

  test('ends the run under the policy fail', async () => {
    const { error } = await collect(watched([failing], 'fail'))
    expect(error).toMatchObject({ message: 'no 0', cause: { message: 'no 0' }, partial: { steps: 1 } })
  })

  test('asynchronously is treated the same', async () => {
    const late: Observer = { update: (async () => Promise.reject(new Error('late'))) as () => void }
    const { result } = await collect(watched([late], 'collect'))
    expect(result?.observerErrors?.length).toBeGreaterThan(0)
  })
})

function watched(observers: (Observer | ((update: Update) => void))[], onObserverError: ObserverFailurePolicy = 'ignore') {
  const model = scriptedModel([[say('Look: '), call('tick')], 'Done.'])
  return runAgent({ model, tools: [tick], messages: [user('go')], observers, onObserverError })
}
