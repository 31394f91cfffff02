/**
 * A task as a terminal shows it: messages in the order of their indexes, each as it grows.
 *
 * It gets the state of the task, any number of times, and prints what is new; so it does not matter whether that came delta by delta or in a
 * snapshot. A message begins only when those before it are closed, because a terminal has one column. Printed text stays; when a turn is
 * retried, a line shows that, and its messages are printed again.
 */
import type { Message, TaskStatus } from '@rivulet/client'
import { cleanLine, createTextCleaner, type TextCleaner } from '../terminal/clean-text.ts'
import { formatDuration } from '../terminal/duration.ts'
import type { Pen } from '../terminal/pen.ts'
import { growingText, onOneLine, shortly } from './content-text.ts'

/** What is read of a task: messages from the first one that is there on, without holes. */
export type Story = { status: TaskStatus; messages: readonly Message[]; attempt: number }

export type Transcript = {
  show(story: Story): void
  /** Takes a story as read. */
  skip(story: Story): void
  /** Nothing more comes. */
  end(): void
}

export type TranscriptOptions = {
  /** For what is said. */
  said: Pen
  /** For how it comes about: reasoning, tools. May be the same. */
  noted: Pen
  /** Leaves out what the user said. Default false. */
  hidesInput?: boolean
  /** Milliseconds that only grow. */
  clock: () => number
}

type Place = {
  index: number
  /** What was begun there; null when nothing was. */
  message: Pick<Message, 'turn' | 'attempt'> | null
  /** How much of its text was written. */
  written: string
  clean: TextCleaner
}

export function createTranscript({ said, noted, hidesInput = false, clock }: TranscriptOptions): Transcript {
  const seenAt = new Map<string, number>()
  let place = placeAt(0)
  return { show, skip, end }

  function show(story: Story): void {
    goBack(story)
    // Before anything is written: below it stands what is being waited for now, not what was.
    showStatus(story)
    for (const message of from(story, place.index)) {
      if (!writeMessage(message)) break
      place = { ...placeAt(message.index + 1), message: agentsOwn(message) ?? place.message }
    }
  }

  function skip({ messages }: Story): void {
    const last = messages.at(-1)
    if (!last) return
    const isOpen = last.status === 'streaming'
    place = { ...placeAt(isOpen ? last.index : last.index + 1), message: agentsOwn(last), written: isOpen ? growingText(last.content) : '' }
  }

  function end(): void {
    noted.status(null)
    said.freshLine()
    noted.freshLine()
  }

  /** To the beginning of a turn that is tried again, and over messages that are not there to be told. */
  function goBack({ messages, attempt }: Story): void {
    const first = messages[0]?.index ?? 0
    if (place.message && isGone(messages, place)) {
      const { turn: turnNumber } = place.message
      const again = messages.find(message => message.turn === turnNumber && message.author !== 'user')
      const end = (messages.at(-1)?.index ?? -1) + 1
      note('yellow', `↻ attempt ${attempt}`)
      place = placeAt(Math.min(place.index, again?.index ?? end))
    }
    if (messages.length > 0 && place.index < first) {
      note('dim', '… what was said before is left out')
      place = placeAt(first)
    }
  }

  /** Whether the message is closed and written to its end. */
  function writeMessage(message: Message): boolean {
    const isOpen = message.status === 'streaming'
    const { content } = message
    place.message = agentsOwn(message) ?? place.message
    if (message.author === 'user') {
      if (!hidesInput) note('bold', `› ${onOneLine(content)}`)
      return !isOpen
    }
    switch (content.type) {
      case 'text':
        grow(said, content.text, isOpen, text => text)
        break
      case 'reasoning':
        grow(noted, growingText(content), isOpen, text => noted.style('dim', text))
        break
      case 'tool_request':
        if (!isOpen) note('cyan', `→ ${content.name} ${shortly(content.raw ?? content.arguments)}`)
        break
      case 'tool_response':
        if (!isOpen) noteResponse(message, content.name, content.isError ? shortly(content.content) : null)
        break
      case 'data':
      case 'media':
        if (!isOpen) writeLine(said, onOneLine(content))
        break
      default:
        content satisfies never
    }
    // Why a message was aborted is said once, by the end of its turn.
    if (message.error && message.status === 'failed') note('red', `✗ ${cleanLine(message.error.message)}`)
    return !isOpen
  }

  /** Writes what came to a text. Only a message that was replaced as a whole does not begin with what was written. */
  function grow(pen: Pen, text: string, isOpen: boolean, style: (text: string) => string): void {
    if (place.written === '') {
      said.freshLine()
      noted.freshLine()
    }
    const isSame = isOpen || text.startsWith(place.written)
    if (!isSame) {
      pen.freshLine()
      place.clean = createTextCleaner()
    }
    const added = place.clean(isSame ? text.slice(place.written.length) : text)
    pen.write(style(added))
    place.written = text
    if (!isOpen) pen.freshLine()
  }

  function noteResponse(message: Message, name: string, problem: string | null): void {
    const took = formatDuration(Date.parse(message.finishedAt ?? message.createdAt) - Date.parse(message.createdAt))
    if (message.status === 'aborted') note('yellow', `■ ${name} ${took}`)
    else if (problem === null) note('green', `✓ ${name} ${took}`)
    else note('red', `✗ ${name} ${took}: ${problem}`)
  }

  function note(style: Parameters<Pen['style']>[0], line: string): void {
    said.freshLine()
    noted.freshLine()
    noted.write(`${noted.style(style, cleanLine(line))}\n`)
  }

  function writeLine(pen: Pen, line: string): void {
    said.freshLine()
    pen.write(`${line}\n`)
  }

  function showStatus(story: Story): void {
    const running = Array.from(from(story, place.index)).filter(isRunningTool)
    for (const { index, attempt } of running) if (!seenAt.has(`${index}/${attempt}`)) seenAt.set(`${index}/${attempt}`, clock())
    if (story.status === 'queued') noted.status(() => 'waiting for a worker')
    else if (story.status === 'running') noted.status(() => running.map(describe).join(', ') || 'running')
    else noted.status(null)
  }

  function describe({ index, attempt, content }: Message): string {
    const name = content.type === 'tool_response' ? content.name : ''
    return cleanLine(`${name} ${formatDuration(clock() - (seenAt.get(`${index}/${attempt}`) ?? clock()))}`)
  }
}

function placeAt(index: number): Place {
  return { index, message: null, written: '', clean: createTextCleaner() }
}

function* from({ messages }: Story, index: number): Generator<Message> {
  for (let at = index - (messages[0]?.index ?? 0); at < messages.length; at += 1) {
    const message = messages[at]
    if (message) yield message
  }
}

/** Whether what was written last is of an earlier attempt than what is there now, or no longer there. */
function isGone(messages: readonly Message[], { index, message, written }: Place): boolean {
  const before = index - (messages[0]?.index ?? 0) - (written === '' ? 1 : 0)
  const now = messages[before]
  if (!now) return before >= messages.length
  return now.turn === message?.turn && now.author !== 'user' && now.attempt !== message.attempt
}

function agentsOwn(message: Message): Message | null {
  return message.author === 'user' ? null : message
}

function isRunningTool({ status, content }: Message): boolean {
  return status === 'streaming' && content.type === 'tool_response'
}
