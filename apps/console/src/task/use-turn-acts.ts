/** The acts of a person on the turns of a task: send an input again, retry the last turn, fork. */
import type { TaskHandle } from '@rivulet/client'
import { useMemo } from 'react'
import type { TurnActs } from '../transcript/turn-acts.ts'

/** Null where the page may not write. */
export function useTurnActs(task: TaskHandle | null, mayWrite: boolean, fork: (turnNumber: number) => void): TurnActs | null {
  return useMemo(() => {
    if (!task || !mayWrite) return null
    // Its messages come by the stream of the page.
    const retry = async () => void (await task.retry())
    return { resend: resendOf(task), fork, retry }
  }, [task, mayWrite, fork])
}

/** Sends an edited input in place of the turn that it began: that turn and all later ones are discarded, and what runs is canceled. */
function resendOf(task: TaskHandle): TurnActs['resend'] {
  return async (message, content) => {
    // The other inputs of the turn, as files, and its params are sent again as they were.
    const { input, inputs = input ? [input] : [], params } = await task.getTurn(message.turn)
    const was = JSON.stringify(message.content)
    const place = inputs.findIndex(other => JSON.stringify(other) === was)
    if (place < 0) throw new Error('This input joined a running turn, so it cannot be sent again by itself')
    const after = await lastKeptBefore(message.turn)
    await task.send(inputs.with(place, content), { after, ifBusy: 'interrupt', ...(params !== undefined && { params }) })
  }

  /** The server rejects a rewind to a turn that was discarded. */
  async function lastKeptBefore(number: number): Promise<number> {
    const { turns } = task.view({ follow: true }).current
    for (let before = number - 1; before > 0; before -= 1) {
      const { status } = turns.find(turn => turn.number === before) ?? (await task.getTurn(before))
      if (status !== 'discarded') return before
    }
    return 0
  }
}
