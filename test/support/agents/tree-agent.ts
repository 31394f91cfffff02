/** Grows a tree of its own kind, as wide on each level as its params say, and counts the tasks in it. A leaf takes as long as its params say. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '@rivulet/worker'

export default defineAgent('tree', async turn => {
  const { widths, restMs } = turn.params as { widths: number[]; restMs: number }
  const [width = 0, ...below] = widths
  const children = Array.from({ length: width }, (_, i) => ({ name: `${i}`, agent: 'tree', params: { widths: below, restMs } }))
  const results = await turn.spawnAll(children)
  if (width === 0) await sleep(restMs, undefined, { signal: turn.signal })
  await turn.send(String(results.reduce((sum, { text }) => sum + Number(text), 1)))
})
