/** A script can ask for any amount of work; it must not keep its process from anything else. */
import type { Turn, Update } from '@rivulet/worker'
import { expect, test } from 'vitest'
import { createScripted } from './scripted.ts'

const times = 10_000_000

test.each([
  ['nothing', [{ repeat: { times, steps: [] } }]],
  ['nothing, within nothing', [{ repeat: { times, steps: [{ repeat: { times: 200, steps: [] } }] } }]],
  ['words', [{ repeat: { times, steps: [{ delta: { index: 0, delta: { type: 'text', text: 'x' } } }] } }]],
])('a script that repeats %s for ever lets others go on, and ends with its turn', async (_, steps) => {
  const abort = new AbortController()
  const running = createScripted().run({ params: { steps }, attempt: 1, signal: abort.signal } as unknown as Turn)
  // Fires only if the script lets go of the event loop.
  setImmediate(() => abort.abort())
  await expect(drain(running)).rejects.toMatchObject({ name: 'AbortError' })
})

async function drain(running: Promise<void> | AsyncGenerator<Update, void, void>): Promise<void> {
  if (!(Symbol.asyncIterator in running)) return running
  for await (const _ of running);
}
