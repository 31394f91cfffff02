/** The codes of errors: those of responses, and those that end a turn or a stream. */
import { errorMeanings } from '@rivulet/contract/errors'
import { type ErrorCode, type ErrorRow, errorTable } from '@rivulet/protocol'
import { code, tableOf } from './marked-block.ts'

const codes = Object.entries(errorTable) as [ErrorCode, ErrorRow][]

export function codesTable(): string {
  const rows = codes.flatMap(([name, row]) => (row.status ? [[code(name), String(row.status), retryOf(row), errorMeanings[name]]] : []))
  return tableOf(['code', 'status', 'retry', 'meaning'], rows)
}

export function failuresTable(): string {
  const rows = codes.flatMap(([name, row]) => (row.status ? [] : [[code(name), retryOf(row), errorMeanings[name]]]))
  return tableOf(['code', 'retry', 'meaning'], rows)
}

function retryOf({ retry, afterSeconds }: ErrorRow): string {
  return afterSeconds !== undefined ? `after ${afterSeconds} s` : retry ? 'yes' : 'no'
}
