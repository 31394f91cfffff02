/** Whether what is shown is how it is. */
import type { ConnectionStatus } from '@rivulet/client'
import { useSyncExternalStore } from 'react'

export function ConnectionMark({ connection, isBusy }: { connection: ConnectionStatus; isBusy: boolean }) {
  const isOnline = useSyncExternalStore(subscribe, () => navigator.onLine)
  const { words, dot } = describe(connection, isBusy, isOnline)
  return (
    <span role="status" className="inline-flex items-center gap-1.5 text-xs whitespace-nowrap text-soft">
      <span className={`size-1.5 rounded-full ${dot}`} />
      {words}
    </span>
  )
}

function describe(connection: ConnectionStatus, isBusy: boolean, isOnline: boolean): { words: string; dot: string } {
  if (!isOnline) return { words: 'Offline', dot: 'bg-warn' }
  switch (connection) {
    case 'live':
      return isBusy ? { words: 'Live', dot: 'bg-good breathing' } : { words: 'Up to date', dot: 'bg-good' }
    case 'waiting':
      return { words: 'Reconnecting', dot: 'bg-warn breathing' }
    case 'idle':
    case 'connecting':
      return { words: 'Connecting', dot: 'bg-line-strong breathing' }
    case 'ended':
      return { words: 'Up to date', dot: 'bg-good' }
    case 'failed':
      return { words: 'Not connected', dot: 'bg-bad' }
    default:
      return connection satisfies never
  }
}

function subscribe(listener: () => void): () => void {
  for (const name of ['online', 'offline']) window.addEventListener(name, listener)
  return () => {
    for (const name of ['online', 'offline']) window.removeEventListener(name, listener)
  }
}
