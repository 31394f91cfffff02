/** The output of a platform and its programs in one terminal: lines for people, or one JSON object per line for programs. */
import { toJsonLine } from '../terminal/json-line.ts'
import type { Pen } from '../terminal/pen.ts'
import { formatLogLine } from './log-line.ts'

type PlatformLog = {
  /** Of the platform itself. */
  write(line: string): void
  /** Of one of its programs. */
  hear(program: string, line: string): void
}

export function createPlatformLog(pen: Pen, isJson: boolean): PlatformLog {
  return isJson ? { write: line => tell('rivulet', line), hear: tell } : { write, hear }

  function write(line: string): void {
    pen.write(`${line}\n`)
  }

  function hear(program: string, line: string): void {
    write(formatLogLine(program, line, pen))
  }

  function tell(program: string, line: string): void {
    pen.write(toJsonLine({ program, ...fieldsOf(line) }))
  }
}

function fieldsOf(line: string): object {
  try {
    const fields: unknown = JSON.parse(line)
    return typeof fields === 'object' && fields !== null && !Array.isArray(fields) ? fields : { msg: line }
  } catch {
    return { msg: line }
  }
}
