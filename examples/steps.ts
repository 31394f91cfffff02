/** Durable steps: finished work is not repeated. An attempt after a failure or a crash gets the results of the finished steps, and continues from there. */
import { randomUUID } from 'node:crypto'
import { defineAgent } from '@rivulet/worker'

export default defineAgent(
  'steps',
  async turn => {
    // Runs once, however many attempts there are: the next attempt sends its message again, whole, and does not place a second order.
    const order = await turn.step('place order', async () => {
      await turn.send(`Placing an order (attempt ${turn.attempt}).`)
      return { id: await placeOrder(`${turn.task.id}/${turn.number}`), attempt: turn.attempt }
    })
    if (turn.attempt === 1) throw new Error('The mail server hung up')
    await turn.send(`Order ${order.id} was placed in attempt ${order.attempt} and confirmed in attempt ${turn.attempt}.`)
  },
  { description: 'Orders once, although it fails once' },
)

/** A crash may come after the order and before its result is stored: by the key, the shop recognises the same order. */
async function placeOrder(idempotencyKey: string): Promise<string> {
  return `${idempotencyKey.slice(0, 8)}-${randomUUID().slice(0, 8)}`
}
