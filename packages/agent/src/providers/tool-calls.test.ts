import type { Update } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { folded, lines } from '../../test/collect.ts'
import { createResponseWriter } from '../model/response-writer.ts'
import { type CallFragment, createToolCalls } from './tool-calls.ts'

describe('a fragment is assigned to its call', () => {
  test('by its id', () => {
    expect(callsOf([part('a', 'f', '{"x":'), part('b', 'g', '{"y":'), { id: 'a', arguments: '1}' }, { id: 'b', arguments: '2}' }])).toEqual(
      [
        ['a', 'f', { x: 1 }],
        ['b', 'g', { y: 2 }],
      ],
    )
  })

  test('by its index, where it carries nothing else, also interleaved', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f', arguments: '' },
      { index: 1, id: 'b', name: 'g', arguments: '' },
      { index: 0, arguments: '{"x":' },
      { index: 1, arguments: '{"y":' },
      { index: 0, arguments: '1}' },
      { index: 1, arguments: '2}' },
    ]
    expect(callsOf(fragments)).toEqual([
      ['a', 'f', { x: 1 }],
      ['b', 'g', { y: 2 }],
    ])
  })

  test('to the latest call, where it has neither', () => {
    expect(callsOf([part('a', 'f', '{'), part('b', 'g', '{"y"'), { arguments: ':2}' }]).at(-1)).toEqual(['b', 'g', { y: 2 }])
  })

  test('indexes need neither begin at 0 nor be neighbours', () => {
    const fragments = [
      { index: 7, id: 'a', name: 'f', arguments: '{"x":' },
      { index: 1_000_000_000, id: 'b', name: 'g', arguments: '{}' },
      { index: 7, arguments: '1}' },
    ]
    expect(callsOf(fragments)).toEqual([
      ['a', 'f', { x: 1 }],
      ['b', 'g', {}],
    ])
  })

  test('two calls that share an index stay two', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f', arguments: '{"x":1}' },
      { index: 0, id: 'b', name: 'f', arguments: '{"x":' },
      { index: 0, arguments: '2}' },
    ]
    expect(callsOf(fragments)).toEqual([
      ['a', 'f', { x: 1 }],
      ['b', 'f', { x: 2 }],
    ])
  })

  test('an empty id is ignored, and a new id without a name does not start a call', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f', arguments: '{' },
      { index: 0, id: '', arguments: '"x":' },
      { index: 0, id: 'made-up', arguments: '1}' },
    ]
    expect(callsOf(fragments)).toEqual([['a', 'f', { x: 1 }]])
  })

  test('calls that all have the index 0 and no id are distinguished by their names', () => {
    const fragments = [
      { index: 0, name: 'f', arguments: '{}' },
      { index: 0, name: 'g', arguments: '{}' },
    ]
    expect(callsOf(fragments).map(([, name]) => name)).toEqual(['f', 'g'])
  })
})

describe('names and ids', () => {
  test('a repeated id does not erase the name, and a repeated name is not appended twice', () => {
    const fragments = [part('a', 'f', '{'), { id: 'a', name: '', arguments: '"x"' }, { id: 'a', name: 'f', arguments: ':1}' }]
    expect(callsOf(fragments)).toEqual([['a', 'f', { x: 1 }]])
  })

  test('a name sent in pieces is joined', () => {
    expect(
      callsOf([
        { index: 0, id: 'a', name: 'read_' },
        { index: 0, name: 'file' },
        { index: 0, arguments: '{}' },
      ]),
    ).toEqual([['a', 'read_file', {}]])
  })

  test('a missing id is generated once per call', () => {
    const { updates } = assemble([
      { index: 0, name: 'f', arguments: '{' },
      { index: 0, arguments: '}' },
      { index: 1, name: 'f', arguments: '{}' },
    ])
    const ids = folded(updates).map(({ content }) => (content.type === 'tool_request' ? content.callId : ''))
    expect(ids[0]).toMatch(/^call_[0-9a-f]{24}$/)
    expect(new Set(ids).size).toBe(2)
  })

  test('a call that never gets a name is not emitted', () => {
    expect(callsOf([{ index: 0, id: 'a', arguments: '{"x":1}' }, part('b', 'f', '{}')])).toEqual([['b', 'f', {}]])
  })

  test('a name may follow the first arguments', () => {
    expect(
      callsOf([
        { index: 0, id: 'a', arguments: '{"x":' },
        { index: 0, name: 'f' },
        { index: 0, arguments: '1}' },
      ]),
    ).toEqual([['a', 'f', { x: 1 }]])
  })
})

describe('arguments', () => {
  test('are emitted as they arrive', () => {
    const { updates } = assemble([
      part('call-7', 'read', '{"pa'),
      { id: 'call-7', arguments: 'th": "src' },
      { id: 'call-7', arguments: '/main.rs"}' },
    ])
    expect(updates.filter(({ type }) => type === 'delta')).toHaveLength(3)
    expect(lines(updates)[1]).toBe('0 tool_request {"path": "src/main.rs"}')
  })

  test('that already parse are still extended', () => {
    expect(callsOf([part('a', 'f', '{"x":1}'), { id: 'a', arguments: ' ' }])).toEqual([['a', 'f', { x: 1 }]])
    expect(callsOf([part('a', 'f', '1'), { id: 'a', arguments: '2' }])).toEqual([['a', 'f', 12]])
  })

  test('that are empty are an empty object', () => {
    expect(callsOf([{ index: 0, id: 'a', name: 'f', arguments: '' }])).toEqual([['a', 'f', {}]])
    expect(callsOf([part('a', 'f', '{}')])).toEqual([['a', 'f', {}]])
    expect(callsOf([part('a', 'f', '{'), { id: 'a', arguments: '}' }])).toEqual([['a', 'f', {}]])
  })

  test('lose an empty object in front of the real one, however it is cut', () => {
    expect(callsOf([part('a', 'f', '{}'), { id: 'a', arguments: '{"x":1}' }])).toEqual([['a', 'f', { x: 1 }]])
    expect(callsOf([part('a', 'f', '{'), { id: 'a', arguments: '}{"x"' }, { id: 'a', arguments: ':1}' }])).toEqual([['a', 'f', { x: 1 }]])
  })

  test('that are not JSON make the call a failed message that keeps its text', () => {
    const [message] = folded(assemble([part('a', 'f', '{"x":')]).updates)
    expect(message).toMatchObject({ status: 'failed', content: { raw: '{"x":' }, error: { code: 'invalid_json' } })
  })
})

describe('there is a limit for', () => {
  test('the number of calls', () => {
    const fragments = Array.from({ length: 5 }, (_, index) => ({ index, name: 'f', arguments: '{}' }))
    expect(() => assemble(fragments, { calls: 4, argumentChars: 100 })).toThrow('more than 4 tool calls')
  })

  test('the arguments of all calls together, including those that are not emitted', () => {
    const fragments = Array.from({ length: 5 }, () => ({ index: 0, arguments: ' '.repeat(30) }))
    expect(() => assemble(fragments, { calls: 4, argumentChars: 100 })).toThrow('more than 100 characters')
  })
})

function part(id: string, name: string, args: string): CallFragment {
  return { id, name, arguments: args }
}

function callsOf(fragments: CallFragment[]) {
  return folded(assemble(fragments).updates).map(({ content }) => {
    if (content.type !== 'tool_request') throw new Error(`Not a call: ${content.type}`)
    return [content.callId, content.name, content.arguments]
  })
}

function assemble(fragments: CallFragment[], limits = { calls: 128, argumentChars: 1000 }) {
  const updates: Update[] = []
  const writer = createResponseWriter(update => updates.push(update))
  const calls = createToolCalls(writer, limits)
  for (const fragment of fragments) calls.add(fragment)
  calls.flush()
  const result = writer.finish({ status: 'complete', stopReason: 'tool_use' })
  return { updates, result }
}
