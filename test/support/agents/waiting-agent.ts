/** Waits three times, or never if its params say so, and says the same. Its second question is held, the others park the turn at once. */
import { defineAgent, type Turn } from '@rivulet/worker'

export async function tell(turn: Turn): Promise<void> {
  const { never = false } = (turn.params ?? {}) as { never?: boolean }
  await turn.send('one')
  for (const name of ['a', 'b', 'c']) {
    if (!never) await turn.ask(name, { title: name, hold: name === 'b' ? '1h' : 0 })
    await turn.step(`after ${name}`, () => turn.send(`${name} is over`).then(() => {}))
    await turn.send(`then ${name}`)
  }
}

export default defineAgent('waiter', tell)
