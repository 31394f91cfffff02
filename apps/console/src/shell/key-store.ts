/**
 * The key of this browser's tabs. It is in the session storage of each tab, and tabs of the same origin pass it on: a new tab asks the others, and a
 * tab that signs out signs out all. It is never in a storage that outlives the browser.
 */
const place = 'rivulet.key'

type Word = { kind: 'ask' } | { kind: 'key'; key: string } | { kind: 'out' }

type KeyStore = {
  current(): string | undefined
  set(key: string): void
  clear(): void
  subscribe(listener: () => void): () => void
}

export function createKeyStore(storage: Storage = sessionStorage, channel = new BroadcastChannel(place)): KeyStore {
  const listeners = new Set<() => void>()
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    const key = current()
    if (data.kind === 'ask') {
      if (key !== undefined) say({ kind: 'key', key })
    } else if (data.kind === 'key') {
      if (key === undefined) keep(data.key)
    } else keep(undefined)
  }
  if (current() === undefined) say({ kind: 'ask' })
  return {
    current,
    set(key) {
      keep(key)
      say({ kind: 'key', key })
    },
    clear() {
      keep(undefined)
      say({ kind: 'out' })
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }

  function current(): string | undefined {
    return storage.getItem(place) ?? undefined
  }

  function keep(key: string | undefined): void {
    if (key === undefined) storage.removeItem(place)
    else storage.setItem(place, key)
    for (const listener of [...listeners]) listener()
  }

  function say(word: Word): void {
    channel.postMessage(word)
  }
}
