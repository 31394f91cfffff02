/**
 * A turn as the event stream of A2A: the whole task first, then what changes, up to its end or to the next question to its caller.
 *
 * A client folds the updates by `append`. Content that is no longer true is sent again with `append: false`, which replaces it. An artifact of an attempt that
 * does not count becomes an empty text, because nothing takes one away.
 */
import { type Change, Narrator } from '@rivulet/narrator'
import type { Cursor, Event, Message, TokenEvent, WireEvent } from '@rivulet/protocol'
import type { DialectStream, LoggedEvent } from '../../stream/dialects/dialect.ts'
import { type A2aIds, type A2aStatus, type A2aTask, type Artifact, a2aTask, artifactOf, endsStream, statusOf } from './a2a-task.ts'

type About = { taskId: string; contextId: string }

export type A2aChunk =
  | { task: A2aTask }
  | { statusUpdate: About & { status: A2aStatus } }
  | { artifactUpdate: About & { artifact: Artifact; append: boolean; lastChunk: boolean } }

export type A2aRun = A2aIds & {
  turnNumber: number
  /** Waits that this request has answered. */
  answered: ReadonlySet<string>
}

export async function openA2aStream(run: A2aRun, received: AsyncIterable<LoggedEvent> | undefined): Promise<DialectStream<A2aChunk>> {
  const stream = new A2aStream(run)
  for await (const { cursor, event } of received ?? []) stream.narrator.recall(cursor, event)
  return stream
}

class A2aStream implements DialectStream<A2aChunk> {
  readonly narrator: Narrator
  readonly #run: A2aRun
  /** The state that the client has; null before it has the task. */
  #state: A2aStatus['state'] | null = null
  #hasEnded = false

  constructor(run: A2aRun) {
    this.#run = run
    this.narrator = new Narrator({ turnNumber: run.turnNumber, followsJoins: true })
  }

  hasEnded(): boolean {
    return this.#hasEnded
  }

  take(cursor: Cursor, event: Event | WireEvent | TokenEvent): A2aChunk[] {
    if (this.#hasEnded || event.type === 'token' || event.type === 'end') return []
    if (event.type === 'deleted') return this.#end({ ...this.#status(), state: 'TASK_STATE_CANCELED' })
    // A client gets the task before what follows; a snapshot is the task.
    const isFirst = this.#state === null
    const task = isFirst && event.type !== 'snapshot' ? this.#task() : []
    const changes = this.narrator.take(cursor, event)
    if (isFirst && event.type === 'snapshot') return [...this.#task(), ...this.#changedStatus()]
    return [...task, ...changes.flatMap(change => this.#updatesOf(change)), ...(event.type === 'caught_up' ? this.#changedStatus() : [])]
  }

  #updatesOf(change: Change): A2aChunk[] {
    switch (change.type) {
      case 'opened':
        return this.#whole(change.message)
      case 'grew': {
        const { message, delta } = change
        return delta.type === 'text' && delta.text !== '' && artifactOf(message) ? [this.#growth(message, delta.text)] : []
      }
      case 'replaced':
      case 'closed': {
        const { message, before } = change
        const [old, text] = [textOf(before), textOf(message)]
        if (old !== null && text?.startsWith(old)) return [this.#growth(message, text.slice(old.length))]
        return [...(artifactOf(message) ? [] : this.#emptied(before, message.status !== 'streaming')), ...this.#whole(message)]
      }
      case 'reset':
        return change.dropped.flatMap(message => this.#emptied(message, true))
      case 'asked':
        return change.more ? [] : this.#changedStatus()
      case 'started':
        // The narrator's turn may be beyond its start. An `asked` or `ended` behind the messages ends the stream then.
        return endsStream(this.#status()) ? [] : this.#changedStatus()
      case 'answered':
      case 'ended':
        return this.#changedStatus()
      case 'custom':
      case 'child':
      case 'state':
        return []
      default:
        return change satisfies never
    }
  }

  #task(): A2aChunk[] {
    const task = a2aTask(this.#run, this.narrator.turn, this.narrator.messages)
    this.#state = task.status.state
    return [{ task }]
  }

  #changedStatus(): A2aChunk[] {
    const status = this.#status()
    if (this.#hasEnded) return []
    if (endsStream(status)) return this.#end(status)
    if (status.state === this.#state) return []
    this.#state = status.state
    return [{ statusUpdate: { ...this.#about(), status } }]
  }

  #end(status: A2aStatus): A2aChunk[] {
    this.#hasEnded = true
    return [{ statusUpdate: { ...this.#about(), status } }]
  }

  #whole(message: Message): A2aChunk[] {
    const artifact = artifactOf(message)
    return artifact ? [this.#update(artifact, { append: false, lastChunk: message.status !== 'streaming' })] : []
  }

  #growth({ index, status }: Message, text: string): A2aChunk {
    return this.#update({ artifactId: `${index}`, parts: [{ text }] }, { append: true, lastChunk: status !== 'streaming' })
  }

  #emptied(message: Message, lastChunk: boolean): A2aChunk[] {
    const empty = { artifactId: `${message.index}`, parts: [{ text: '' }] }
    return artifactOf(message) ? [this.#update(empty, { append: false, lastChunk })] : []
  }

  #update(artifact: Artifact, how: { append: boolean; lastChunk: boolean }): A2aChunk {
    return { artifactUpdate: { ...this.#about(), artifact, ...how } }
  }

  #status(): A2aStatus {
    return statusOf(this.#run, this.narrator.turn, this.#run.answered)
  }

  #about(): About {
    return { taskId: this.#run.turnId, contextId: this.#run.contextId }
  }
}

/** The text of an artifact; null for one that comes whole. */
function textOf(message: Message): string | null {
  return message.content.type === 'text' && artifactOf(message) ? message.content.text : null
}
