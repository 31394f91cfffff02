/**
 * Inputs that come while a turn runs. The server lets queued turns join this one, in order; each becomes messages of the user in it.
 *
 * A turn that joined stays joined, so a new attempt is offered it again: where it was taken before, if the place has a name, or at the first chance.
 */

import type { JoinedInput } from '@rivulet/contract/internal'
import { type Content, type Message, RivuletError } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { TakeStep } from './steps/steps.ts'

/** Where a durable run takes inputs: the step that notes what it took, and the step that follows it. */
type TakePlace = { step: string; before: string }

export type TakeInputs<M = Message> = (place?: TakePlace) => Promise<M[]>

type InputsDeps = {
  /** Turns with numbers after one, up to another. */
  take: (range: { after: number; upTo?: number }) => Promise<JoinedInput[]>
  join: (turnNumber: number, inputs: readonly Content[]) => Message[]
  step: TakeStep
  isRemembered: (step: string) => boolean
  /** The step that the calling code belongs to. */
  within: () => string | undefined
}

export function createTakeInputs({ take, join, step, isRemembered, within }: InputsDeps): TakeInputs {
  let last = 0
  return async function takeInputs(place) {
    const around = within()
    if (around !== undefined)
      throw new RivuletError('bad_call', `turn.takeInputs is called in step "${around}": a step is stored when it ends, so call it outside`)
    const joined = place ? await takeAt(place) : await take({ after: last })
    if (failpoint && joined.length > 0) await failpoint('take answered')
    last = joined.at(-1)?.turn ?? last
    const messages = joined.flatMap(({ turn, inputs }) => join(turn, inputs))
    if (failpoint && joined.length > 0) await failpoint('joined')
    return messages
  }

  /** The step stores the numbers of the turns. One that took nothing is not stored: then the step after it shows that nothing was taken. */
  async function takeAt(place: TakePlace): Promise<JoinedInput[]> {
    if (!isRemembered(place.step) && isRemembered(place.before)) return []
    let fresh: JoinedInput[] | undefined
    const nothing = new Error('The API has no input for this turn')
    try {
      const numbers = await step(place.step, async () => {
        fresh = await take({ after: last })
        if (fresh.length === 0) throw nothing
        return fresh.map(({ turn }) => turn)
      })
      return fresh ?? (await take({ after: last, upTo: Math.max(...numbers) }))
    } catch (error) {
      if (error === nothing) return []
      throw error
    }
  }
}
