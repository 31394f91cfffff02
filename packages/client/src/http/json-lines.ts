/** Reads a response of JSON lines, one value at a time, at the pace of its reader. */
import { untilAborted } from '@rivulet/protocol'
import { unreachable } from './rejection.ts'

/** Rejects where the response breaks off: the last line would be missing, or half there. */
export async function* readLines<T>(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<T, void, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal)
      const lines = (rest + (value ? decoder.decode(value, { stream: true }) : '')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) yield JSON.parse(line) as T
      if (done) break
    }
    if (rest !== '') throw new Error('The last line is cut off')
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw unreachable('The response broke off', error)
  } finally {
    reader.cancel(signal.reason).catch(() => {})
  }
}
