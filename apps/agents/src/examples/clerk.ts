/** Asks before it acts: a form for the amount, then an approval of the refund. It waits for people without holding a worker. */
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

export const clerk = defineAgent(
  'clerk',
  async turn => {
    await turn.send('I can refund an order. Which one, and how much?')
    const order = await turn.ask('order', {
      title: 'Order to refund',
      schema: z.object({
        number: z.string().min(1).describe('The number of the order'),
        amount: z.number().min(0.01).max(10_000).describe('In euros'),
        reason: z.enum(['damaged', 'late', 'other']).optional(),
      }),
      onExpire: 'decline',
      expiresIn: '7d',
    })
    if (order.action !== 'accept' || !order.content) return void (await turn.send('Nothing was refunded.'))
    const { number, amount } = order.content
    const approval = await turn.ask('refund', {
      title: `Refund ${amount.toFixed(2)} € for order ${number}?`,
      tool: 'refund',
      arguments: { number, amount },
      assignee: 'finance',
      onExpire: 'decline',
      expiresIn: '3d',
    })
    if (approval.action !== 'accept') return void (await turn.send(`Not refunded${approval.comment ? `: ${approval.comment}` : ''}.`))
    // A step, so that the refund is made once, whatever becomes of this attempt.
    await turn.step('refund', async () => void (await turn.send(`Refunded ${amount.toFixed(2)} € for order ${number}.`)))
  },
  { description: 'Asks for the details of a refund, and for its approval' },
)
