/** Several viewers share one connection, and take turns to write on it. */
import { encodeByteText } from '@rivulet/broker'
import type { Event } from '@rivulet/protocol'
import { expect, test, vi } from 'vitest'
import { encodeEntry, encodeRetry, encodeWireEvent, pieceOf } from '../sse-frame.ts'
import { type Shared, type SseResponse, share } from '../sse-response.ts'
import { type ManyResponse, respondToMany } from './many-response.ts'

const one = '0198c0de-0000-7000-8000-000000000001'
const two = '0198c0de-0000-7000-8000-000000000002'

test('frames carry their task in front of the cursor, and those of one tick leave in one write', async () => {
  const { many, written } = open(2)
  const [first, second] = [addPart(many, one), addPart(many, two)]
  first.write(word(one, '1-2', 'a'))
  second.write(word(two, '3-4', 'b'))
  first.write(word(one, '1-3', 'c'))
  expect(written()).toEqual([])
  await flushed()
  expect(written()).toHaveLength(1)
  const ids = Array.from(
    written()
      .join('')
      .matchAll(/^id: (.*)$/gm),
    ([, id]) => id,
  )
  expect(ids).toEqual([`${one}/1-2`, `${two}/3-4`, `${one}/1-3`])
})

test('`retry` is sent once', async () => {
  const { many, written } = open(2)
  for (const part of [addPart(many, one), addPart(many, two)]) part.write(share([pieceOf(encodeRetry())]))
  await flushed()
  expect(written().join('').match(/retry/g)).toHaveLength(1)
})

test('a socket that is full stops every viewer that writes; when it drains they go on one after the other, until it is full again', async () => {
  const { many, fill } = open(3)
  const parts = [addPart(many, one), addPart(many, two), addPart(many, one)]
  fill(true)
  expect(parts.map(part => part.write(word(one, '1-1', 'x'.repeat(70_000))))).toEqual([false, false, false])
  const [first, second, third] = parts
  first?.onDrained(() => first.write(word(one, '1-2', 'x'.repeat(70_000))))
  many.drained()
  expect(parts.map(({ drains }) => drains())).toEqual([1, 0, 0])
  many.drained()
  expect(parts.map(({ drains }) => drains())).toEqual([2, 1, 1])
  fill(false)
  many.drained()
  expect(parts.map(({ drains }) => drains())).toEqual([3, 1, 1])
  expect([second?.write(word(two, '1-1', 'y')), third?.write(word(one, '1-3', 'y'))]).toEqual([true, true])
})

test('a viewer is not started before the socket has room', async () => {
  const { many, fill } = open(2)
  const part = addPart(many, one)
  fill(true)
  part.write(word(one, '1-1', 'x'.repeat(70_000)))
  const room = vi.fn()
  const asked = many.room().then(room)
  await flushed()
  expect(room).not.toHaveBeenCalled()
  many.drained()
  await asked
  expect(room).toHaveBeenCalledWith(true)
})

test('the response ends with the last task, and each viewer is gone with its own task', async () => {
  const { many, written, isEnded } = open(2)
  const [first, second] = [addPart(many, one), addPart(many, two)]
  first.finish(one)
  expect([first.isGone(), isEnded()]).toEqual([true, false])
  second.finish(two)
  await flushed()
  expect(
    written()
      .join('')
      .match(/event: end/g),
  ).toHaveLength(2)
  // It stays until the connection is closed, because a client that does not read the end is cut.
  expect([second.isGone(), isEnded()]).toEqual([false, true])
  many.gone()
  expect(second.isGone()).toBe(true)
})

test('a viewer that leaves without an end ends the whole response, so that its client comes back for all of them', async () => {
  const { many, isEnded } = open(2)
  const [first, second] = [addPart(many, one), addPart(many, two)]
  first.write(word(one, '1-1', 'a'))
  first.end()
  expect(isEnded()).toBe(true)
  expect(second.write(word(two, '1-1', 'b'))).toBe(false)
  expect(await many.room()).toBe(false)
  many.gone()
  expect([first.isGone(), second.isGone()]).toEqual([true, true])
})

function open(count: number) {
  const chunks: Shared[] = []
  let isFull = false
  let isEnded = false
  const response: SseResponse = {
    write: bytes => {
      chunks.push(bytes)
      return !isFull
    },
    end: () => {
      isEnded = true
    },
    destroy: () => {},
  }
  return {
    many: respondToMany(response, count, { isTagged: true, children: null }),
    written: () => chunks.map(({ plain }) => plain.toString()),
    isEnded: () => isEnded,
    fill: (is: boolean) => {
      isFull = is
    },
  }
}

/** A part, as a viewer sees it. */
function addPart(many: ManyResponse, task: string) {
  let response: SseResponse | undefined
  let drains = 0
  let isGone = false
  let onDrained: () => void = () => {}
  many.add(task, part => {
    response = part
    const gone = () => {
      isGone = true
    }
    const drained = () => {
      drains += 1
      onDrained()
    }
    return { drained, gone, leave: () => {}, sendToken: () => false }
  })
  if (!response) throw new Error('The part was not opened')
  const { write, end } = response
  return {
    ...{ write, end, drains: () => drains, isGone: () => isGone },
    onDrained: (then: () => void) => {
      onDrained = then
    },
    finish(id: string) {
      write(share([encodeWireEvent('9-9', { type: 'end', task: id, status: 'completed' })]))
      end()
    },
  }
}

function word(task: string, cursor: `${number}-${number}`, text: string): Shared {
  const event: Event = { type: 'message.delta', task, turn: 1, attempt: 1, at: 1, index: 0, delta: { type: 'text', text }, offset: 0 }
  return share([encodeEntry({ cursor, json: encodeByteText(JSON.stringify(event)) }, event)])
}

async function flushed(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve))
}
