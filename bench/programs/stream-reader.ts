/**
 * Reads one HTTP response with an event stream from a raw socket: head, chunks, frames. Cheap, because thousands of readers share a core with
 * the measured processes. Strict: any other response throws.
 */
type StreamReader = {
  /** Takes bytes from the socket. `onText` receives whole frames, `\n\n` included. */
  feed(bytes: Buffer): void
  hasHead(): boolean
}

export function createStreamReader(onText: (text: string) => void): StreamReader {
  let head = ''
  let isOpen = false
  let isChunked = false
  /** Bytes left of the current chunk, its line end included. */
  let left = 0
  let sizeLine = ''
  let rest = ''
  return { feed, hasHead: () => isOpen }

  function feed(bytes: Buffer): void {
    if (isOpen) {
      body(bytes.toString('latin1'))
      return
    }
    head += bytes.toString('latin1')
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    if (!/^HTTP\/1\.1 200 /.test(head)) throw new Error(`The response is ${head.slice(0, 600)}`)
    isOpen = true
    isChunked = /\r\ntransfer-encoding: *chunked\r\n/i.test(head.slice(0, end + 2))
    const after = head.slice(end + 4)
    head = ''
    if (after) body(after)
  }

  function body(text: string): void {
    if (!isChunked) {
      frames(text)
      return
    }
    let at = 0
    while (at < text.length) {
      if (left === 0) {
        const end = text.indexOf('\n', at)
        sizeLine += text.slice(at, end < 0 ? undefined : end)
        if (end < 0) return
        at = end + 1
        const size = Number.parseInt(sizeLine, 16)
        if (Number.isNaN(size)) throw new Error(`Invalid chunk size: ${JSON.stringify(sizeLine)}`)
        sizeLine = ''
        left = size + 2
      }
      const taken = text.slice(at, at + left)
      at += taken.length
      left -= taken.length
      // The last two bytes are the line end after the chunk.
      const content = left >= 2 ? taken : taken.slice(0, Math.max(0, taken.length - (2 - left)))
      if (content) frames(content)
    }
  }

  function frames(text: string): void {
    const all = rest ? rest + text : text
    const end = all.lastIndexOf('\n\n')
    if (end < 0) {
      rest = all
      return
    }
    rest = all.slice(end + 2)
    onText(rest ? all.slice(0, end + 2) : all)
  }
}
