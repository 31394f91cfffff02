import { describe, expect, test } from 'vitest'
import { type FrameOptions, readFrames } from './sse-frames.ts'
import type { Frame } from './sse-parser.ts'

const encoder = new TextEncoder()

function optionsOf(own: Partial<FrameOptions> = {}): FrameOptions {
  return { signal: new AbortController().signal, silenceMs: 60_000, wakeUps: () => () => {}, onRetry: () => {}, ...own }
}

/** A body of these pieces; `asked` counts how many were taken. */
function bodyOf(pieces: (string | Uint8Array)[], isEndless = false) {
  const seen = { asked: 0, isLeft: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = pieces[seen.asked]
        if (piece === undefined) return isEndless ? new Promise(() => {}) : controller.close()
        seen.asked += 1
        controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece)
      },
      cancel() {
        seen.isLeft = true
      },
    },
    { highWaterMark: 0 },
  )
  return { body, seen }
}

async function framesOf(body: ReadableStream<Uint8Array>, options = optionsOf()): Promise<Frame[]> {
  const frames: Frame[] = []
  for await (const frame of readFrames(body, options)) frames.push(frame)
  return frames
}

describe('frames', () => {
  test('come out whole, wherever the bytes are cut', async () => {
    const bytes = encoder.encode('retry: 1500\n\nid: 1-1\ndata: "wörd 🌊"\n\n: hb\n\nid: 1-2\ndata: 2\n\n')
    for (const size of [1, 2, 3, 7, 1_000]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, place) => bytes.slice(place * size, (place + 1) * size))
      const retries: number[] = []
      const frames = await framesOf(bodyOf(pieces).body, optionsOf({ onRetry: ms => retries.push(ms) }))
      expect(frames.map(({ id, data }) => [id, data])).toEqual([
        ['1-1', '"wörd 🌊"'],
        ['1-2', '2'],
      ])
      expect(retries).toEqual([1_500])
    }
  })

  test('half a frame at the end of a body is dropped', async () => {
    expect(await framesOf(bodyOf(['id: 1-1\ndata: 1\n\nid: 1-2\ndata: 2\n']).body)).toHaveLength(1)
  })

  test('a piece is asked for when the one before it was taken', async () => {
    const { body, seen } = bodyOf(
      Array.from({ length: 50 }, (_, place) => `id: 1-${place + 1}\ndata: a\n\nid: 1-${place + 1}\ndata: b\n\n`),
    )
    const frames = readFrames(body, optionsOf())
    for (let taken = 1; taken <= 20; taken += 1) {
      await frames.next()
      expect(seen.asked).toBe(Math.ceil(taken / 2))
    }
    await frames.return()
    expect(seen).toEqual({ asked: 10, isLeft: true })
  })
})

describe('a connection', () => {
  test('that says nothing is given up', async () => {
    const { body, seen } = bodyOf(['id: 1-1\ndata: 1\n\n'], true)
    const frames = readFrames(body, optionsOf({ silenceMs: 10 }))
    expect((await frames.next()).done).toBe(false)
    await expect(frames.next()).rejects.toMatchObject({ code: 'unreachable', message: 'No byte for 10 ms' })
    await expect.poll(() => seen.isLeft).toBe(true)
  })

  test('is not silent while its reader is slow', async () => {
    const frames = readFrames(bodyOf(['id: 1-1\ndata: 1\n\n', 'id: 1-2\ndata: 2\n\n']).body, optionsOf({ silenceMs: 20 }))
    await frames.next()
    await new Promise(resolve => setTimeout(resolve, 60))
    expect((await frames.next()).value).toMatchObject({ id: '1-2' })
  })

  test('that has been silent is not waited for by a page that wakes up', async () => {
    let wake = () => {}
    const wakeUps = (given: () => void) => {
      wake = given
      return () => {}
    }
    const frames = readFrames(bodyOf([], true).body, optionsOf({ silenceMs: 60_000, wakeUps }))
    const next = frames.next()
    wake()
    const clock = performance.now
    performance.now = () => clock.call(performance) + 31_000
    wake()
    performance.now = clock
    await expect(next).rejects.toMatchObject({ code: 'unreachable' })
  })

  test('that is aborted fails with the reason, also where the body does not hear of it', async () => {
    const controller = new AbortController()
    const next = readFrames(bodyOf([], true).body, optionsOf({ signal: controller.signal })).next()
    controller.abort('left')
    await expect(next).rejects.toBe('left')
  })
})
