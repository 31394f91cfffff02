/** Files on their way to the server, and those that are there and wait to be sent with a message. */
import type { ContentOf } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useEffect, useRef, useState } from 'react'
import { textOf } from '../shell/queries.ts'

export type Upload = { key: number; name: string; size: number } & (
  | { state: 'sending'; sent: number }
  | { state: 'stored'; content: ContentOf<'media'> }
  | { state: 'failed'; error: string }
)

export type Uploads = {
  list: readonly Upload[]
  isSending: boolean
  add(files: Iterable<File>): void
  remove(key: number): void
  /** Those that are stored, as inputs; the list is empty then. */
  take(): ContentOf<'media'>[]
  putBack(contents: readonly ContentOf<'media'>[]): void
}

let lastKey = 0

/** @param given what is stored already */
export function useUploads(given: readonly ContentOf<'media'>[] = []): Uploads {
  const client = useClient()
  const [list, setList] = useState<readonly Upload[]>(() => given.map(storedUpload))
  const leaving = useRef(new Map<number, AbortController>())
  useEffect(() => {
    const { current } = leaving
    return () => {
      for (const controller of current.values()) controller.abort()
    }
  }, [])
  return { list, isSending: list.some(({ state }) => state === 'sending'), add, remove, take, putBack }

  function add(files: Iterable<File>): void {
    for (const file of files) void upload(file)
  }

  async function upload(file: File): Promise<void> {
    lastKey += 1
    const about = { key: lastKey, name: file.name || 'pasted', size: file.size }
    const controller = new AbortController()
    leaving.current.set(about.key, controller)
    setList(list => [...list, { ...about, state: 'sending', sent: 0 }])
    try {
      const { id, mimeType, size } = await client.files.upload(file, {
        name: about.name,
        signal: controller.signal,
        onProgress: ({ sent }) => change({ ...about, state: 'sending', sent }),
      })
      change({ ...about, state: 'stored', content: { type: 'media', mimeType, file: id, name: about.name, size } })
    } catch (reason) {
      change({ ...about, state: 'failed', error: textOf(reason) })
    } finally {
      leaving.current.delete(about.key)
    }
  }

  function change(next: Upload): void {
    setList(list => list.map(known => (known.key === next.key ? next : known)))
  }

  function remove(key: number): void {
    leaving.current.get(key)?.abort()
    setList(list => list.filter(known => known.key !== key))
  }

  function take(): ContentOf<'media'>[] {
    setList(list => list.filter(({ state }) => state !== 'stored'))
    return list.flatMap(upload => (upload.state === 'stored' ? [upload.content] : []))
  }

  function putBack(contents: readonly ContentOf<'media'>[]): void {
    setList(list => [...contents.map(storedUpload), ...list])
  }
}

function storedUpload(content: ContentOf<'media'>): Upload {
  lastKey += 1
  return { key: lastKey, name: content.name ?? 'file', size: content.size ?? 0, state: 'stored', content }
}
