/** The acts of a person on the turns of a task. */
import type { Content, Message } from '@rivulet/client'

export type TurnActs = {
  /** Sends an input again with other words, in place of its turn and all later ones. */
  resend(message: Message, content: Content): Promise<void>
  /** Opens the dialog for a copy of the task up to the end of this turn. */
  fork(turnNumber: number): void
  /** Runs the last turn again. */
  retry(): Promise<void>
}
