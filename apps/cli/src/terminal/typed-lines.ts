/**
 * The lines that a person types at a terminal while a command runs. The open question takes a line, or else the listener does. Stdin is read only
 * while there is a question or a listener, and never from a pipe: a line typed between them waits in the terminal for the next one.
 *
 * The terminal edits and echoes a line, and sends Ctrl-C as a signal. A question with a history edits its line itself, because a terminal knows
 * no arrow keys; Ctrl-C becomes a signal there, too.
 */
import { createInterface, type Interface } from 'node:readline'
import type { Prompt } from '../tasks/ask-person.ts'

type TypedLines = { prompt: Prompt; onLine(listener: (line: string) => void): () => void }

export function createTypedLines(input: NodeJS.ReadableStream & { isTTY?: boolean }, questions: NodeJS.WritableStream): TypedLines {
  let reader: Interface | null = null
  let hasEnded = false
  let answer: ((line: string | null) => void) | null = null
  let listener: ((line: string) => void) | null = null
  return { prompt, onLine }

  async function prompt(question: string, signal: AbortSignal, history?: string[]): Promise<string | null> {
    if (!input.isTTY || signal.aborted || hasEnded) return null
    if (history) return promptWithHistory(question, signal, history)
    read()
    questions.write(question)
    return new Promise(resolve => {
      const leave = () => answer?.(null)
      signal.addEventListener('abort', leave, { once: true })
      answer = line => {
        answer = null
        signal.removeEventListener('abort', leave)
        if (!listener) pause()
        resolve(line)
      }
    })
  }

  function promptWithHistory(question: string, signal: AbortSignal, history: string[]): Promise<string | null> {
    pause()
    const lines = createInterface({ input, output: questions, terminal: true, history: [...history] })
    lines.on('history', entered => history.splice(0, history.length, ...entered))
    lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    return new Promise(resolve => {
      const leave = () => lines.close()
      signal.addEventListener('abort', leave, { once: true })
      // Ctrl-D closes the lines, and would leave the question open.
      lines.once('close', () => {
        signal.removeEventListener('abort', leave)
        resolve(null)
      })
      lines.question(question, line => {
        resolve(line)
        lines.close()
      })
    })
  }

  function onLine(given: (line: string) => void): () => void {
    if (!input.isTTY) return () => {}
    listener = given
    read()
    return () => {
      listener = null
      if (!answer) pause()
    }
  }

  function read(): void {
    if (reader || hasEnded) return
    const opened = createInterface({ input, terminal: false })
    reader = opened.on('line', take).on('close', () => {
      if (reader === opened) end()
    })
  }

  function pause(): void {
    const open = reader
    reader = null
    open?.close()
  }

  function take(line: string): void {
    if (answer) answer(line)
    else listener?.(line)
  }

  /** Ctrl-D. */
  function end(): void {
    hasEnded = true
    answer?.(null)
  }
}
