/**
 * Writes to a terminal, a file or a pipe.
 *
 * On a terminal, a status line may be shown below the output: the pen removes it before each write and shows it again afterwards, so that no
 * other code needs to know of it. It is shown only while the cursor is at the start of a line.
 */
import { stripVTControlCharacters, styleText } from 'node:util'
import { fitLine } from './text-width.ts'

export type Style = Parameters<typeof styleText>[0]

export type Pen = {
  /** Whether the output is a terminal, which can show a status line. */
  isInteractive: boolean
  columns(): number
  write(text: string): void
  /** Resolves when the reader has read the output, because a slow pipe would otherwise fill memory. */
  flush(): Promise<void>
  /** Ends a line that was begun. */
  freshLine(): void
  style(style: Style, text: string): string
  /** Asked anew for every frame of the spinner; null takes it away. */
  status(text: (() => string) | null): void
}

export type PenStream = { isTTY?: boolean; columns?: number; writableLength?: number; write(text: string, taken?: () => void): unknown }

const frames = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const frameMs = 80
/** Where less fits than this, a status line would wrap and could not be taken away again. */
const minColumns = 5
const eraseLine = '\r\u001b[2K'

export function createPen(stream: PenStream, environment: Record<string, string | undefined>): Pen {
  const hasColor = wantsColor(stream, environment)
  const isInteractive = stream.isTTY === true && environment.TERM !== 'dumb'
  let isAtLineStart = true
  let status: (() => string) | null = null
  let isStatusShown = false
  let frame = 0
  let spinning: NodeJS.Timeout | undefined
  return { isInteractive, columns, write, flush, freshLine, style, status: setStatus }

  function columns(): number {
    return stream.columns || 80
  }

  function write(text: string): void {
    if (text === '') return
    stream.write(isStatusShown ? eraseLine + text : text)
    isStatusShown = false
    isAtLineStart = endsLine(text)
    draw()
  }

  async function flush(): Promise<void> {
    if (stream.writableLength) await new Promise<void>(resolve => stream.write('', resolve))
  }

  function freshLine(): void {
    if (!isAtLineStart) write('\n')
  }

  function style(wanted: Style, text: string): string {
    return hasColor && text !== '' ? styleText(wanted, text, { validateStream: false }) : text
  }

  function setStatus(text: (() => string) | null): void {
    if (!isInteractive) return
    status = text
    if (text) {
      spinning ??= setInterval(turn, frameMs)
      draw()
    } else {
      clearInterval(spinning)
      spinning = undefined
      if (isStatusShown) stream.write(eraseLine)
      isStatusShown = false
    }
  }

  function turn(): void {
    frame = (frame + 1) % frames.length
    draw()
  }

  function draw(): void {
    if (!status || !isAtLineStart || columns() < minColumns) return
    // The last column stays free: some terminals begin a new line when it is filled.
    const line = fitLine(status(), columns() - 3)
    stream.write(`${eraseLine}${style('cyan', frames.charAt(frame))} ${style('dim', line)}`)
    isStatusShown = true
  }
}

/** Color may end after the line does. */
function endsLine(text: string): boolean {
  return stripVTControlCharacters(text.slice(text.lastIndexOf('\n') + 1)) === '' && text.includes('\n')
}

/** FORCE_COLOR, NO_COLOR, and else whether it is a terminal. */
function wantsColor(stream: PenStream, { FORCE_COLOR, NO_COLOR, TERM }: Record<string, string | undefined>): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  if (NO_COLOR) return false
  return stream.isTTY === true && TERM !== 'dumb'
}
