/** Which part of a file a GET asks for (RFC 9110): one range, if the file is still the one that the client knows. */
import type { IncomingHttpHeaders } from 'node:http'
import { RivuletError } from '@rivulet/protocol'
import type { ByteRange } from '../../../files/file-store.ts'

/** Null for the whole file. Several ranges, and what is not a range, count as none. Throws for a range that the file does not have. */
export function rangeOf({ range, 'if-range': condition }: IncomingHttpHeaders, size: number, etag: string): ByteRange | null {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(range?.trim() ?? '') ?? []
  if ((first === '' && last === '') || (condition !== undefined && condition !== etag)) return null
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1)
  if (first !== '' && last !== '' && Number(last) < Number(first)) return null
  if (start >= end) throw new RivuletError('range_not_satisfiable', 'The file does not have this range')
  return { start, end }
}

/** Whether the client has this very file already. */
export function isKnown({ 'if-none-match': known }: IncomingHttpHeaders, etag: string): boolean {
  return known !== undefined && (known.trim() === '*' || known.split(',').some(one => one.trim().replace(/^W\//, '') === etag))
}
