/** Without the client, the types of the protocol are still whole: a type that is `any` would have no error here. */
import type { Message, Turn, Wait } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'

declare const message: Message
declare const turn: Turn
declare const wait: Wait

// @ts-expect-error: metadata is an object
export const metadata: number = message.metadata
// @ts-expect-error: params are JSON
export const params: () => void = turn.params
// @ts-expect-error: metadata is an object
export const about: number = wait.metadata
export default defineAgent('typed', async turn => {
  // @ts-expect-error: a turn has no such field
  await turn.send(turn.nothing)
})
