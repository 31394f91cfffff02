/**
 * Text files of a folder in which a command may have left anything: a pipe, a device, a file of gigabytes.
 *
 * Only regular files are read and written, and no call waits for the other end of a pipe: an abort would not free the thread that waits.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'

const maxMiB = 4
const maxBytes = maxMiB * 1024 * 1024

/** `name` is for errors. */
type TextFileOptions = { name: string; signal: AbortSignal }

export function readText(path: string, { name, signal }: TextFileOptions): Promise<string> {
  return withFile(path, name, constants.O_RDONLY, async file => {
    // One byte more than allowed, because the size may change while it is read.
    const bytes = await buffer(file.createReadStream({ end: maxBytes, signal }))
    if (bytes.length > maxBytes) throw new Error(`${name} is larger than ${maxMiB} MiB: read or change a part of it with a command`)
    return bytes.toString('utf8')
  })
}

export function writeText(path: string, text: string, { name, signal }: TextFileOptions): Promise<void> {
  // O_RDWR, because a pipe without a reader does not open for writing only, and its error would not be clear.
  return withFile(path, name, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, file => file.writeFile(text, { signal }))
}

async function withFile<T>(path: string, name: string, flags: number, use: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, flags | constants.O_NONBLOCK)
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${name} is not a regular file`)
    return await use(file)
  } finally {
    await file.close()
  }
}
