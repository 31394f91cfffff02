import type { Turn } from '@rivulet/client'
import { expect, test } from 'vitest'
import { createPen } from '../terminal/pen.ts'
import { createSteering } from './steering.ts'

test('typed lines are sent in order, and what was taken and what waits is shown', async () => {
  const sent: string[] = []
  const shown: string[] = []
  const task = {
    send: async (line: unknown) => ({ number: sent.push(String(line)) + 1 }) as Turn,
  }
  const noted = createPen({ write: text => shown.push(text) }, {})
  const steering = createSteering({ task, noted, url: '' })
  for (const line of ['first', ' ', 'second']) steering.send(line)
  expect(await steering.unseen([{ number: 1 }])).toBe(2)
  steering.look([{ number: 1 }, { number: 2, joinedTo: 1 }])
  expect(await steering.unseen([{ number: 1 }, { number: 2, joinedTo: 1 }])).toBe(3)
  expect(await steering.unseen([{ number: 3 }])).toBe(null)
  expect(sent).toEqual(['first', 'second'])
  expect(shown.join('')).toBe('› waits as turn 2\n› waits as turn 3\n› turn 1 has taken turn 2\n')
})

test('a line that the API rejects is shown with its reason, and the next one is sent', async () => {
  const shown: string[] = []
  const task = {
    send: async (line: unknown) => {
      if (line === 'bad') throw new Error('The queue of this task is full')
      return { number: 2 } as Turn
    },
  }
  const steering = createSteering({ task, noted: createPen({ write: text => shown.push(text) }, {}), url: '' })
  steering.send('bad')
  steering.send('good')
  expect(await steering.unseen([])).toBe(2)
  expect(shown.join('')).toBe('The queue of this task is full\n› waits as turn 2\n')
})
