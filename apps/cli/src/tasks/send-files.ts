/** Uploads the files of a command, one after the other, and refers to them as contents. */
import { createReadStream } from 'node:fs'
import { access } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import type { Content, RivuletClient } from '@rivulet/client'

export async function sendFiles({ files }: RivuletClient, paths: readonly string[]): Promise<Content[]> {
  // All of them first: a name that is misspelled uploads nothing.
  for (const path of paths) await access(path)
  const contents: Content[] = []
  for (const path of paths) {
    const { id, mimeType, name, size } = await files.upload(createReadStream(path), { name: basename(path), mimeType: typeOf(path) })
    contents.push({ type: 'media', mimeType, file: id, ...(name !== undefined && { name }), size })
  }
  return contents
}

/** By the end of its name: the API and the model go by what is said here. */
function typeOf(path: string): string {
  return types[extname(path).slice(1).toLowerCase()] ?? 'application/octet-stream'
}

const types: Record<string, string> = {
  ...{ pdf: 'application/pdf', json: 'application/json', zip: 'application/zip' },
  ...{ png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', svg: 'image/svg+xml' },
  ...{ txt: 'text/plain', md: 'text/markdown', csv: 'text/csv', html: 'text/html' },
  ...{ mp3: 'audio/mpeg', wav: 'audio/wav', mp4: 'video/mp4', webm: 'video/webm' },
}
