/**
 * The lines that a person types at a terminal while a command runs. The open question takes a line, or else the listener does. Nothing is read from
 * stdin before the first question or listener, and never from a pipe. The terminal edits and echoes the line, and sends Ctrl-C as a signal.
 */
import { createInterface } from 'node:readline'
import type { Prompt } from '../tasks/ask-person.ts'

export type TypedLines = { prompt: Prompt; onLine(listener: (line: string) => void): () => void }

export function createTypedLines(
  input: NodeJS.ReadableStream & { isTTY?: boolean },
  questions: { write(text: string): unknown },
): TypedLines {
  let state: 'idle' | 'reading' | 'ended' = 'idle'
  let answer: ((line: string | null) => void) | null = null
  let listener: ((line: string) => void) | null = null
  return { prompt, onLine }

  async function prompt(question: string, signal: AbortSignal): Promise<string | null> {
    if (!input.isTTY || signal.aborted || state === 'ended') return null
    read()
    questions.write(question)
    return new Promise(resolve => {
      const leave = () => answer?.(null)
      signal.addEventListener('abort', leave, { once: true })
      answer = line => {
        answer = null
        signal.removeEventListener('abort', leave)
        resolve(line)
      }
    })
  }

  function onLine(given: (line: string) => void): () => void {
    if (!input.isTTY) return () => {}
    listener = given
    read()
    return () => {
      listener = null
    }
  }

  function read(): void {
    if (state !== 'idle') return
    state = 'reading'
    createInterface({ input, terminal: false }).on('line', take).on('close', end)
  }

  function take(line: string): void {
    if (answer) answer(line)
    else listener?.(line)
  }

  /** Ctrl-D. */
  function end(): void {
    state = 'ended'
    answer?.(null)
  }
}
