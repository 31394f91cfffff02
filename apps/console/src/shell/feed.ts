/**
 * The feed of the tenant, followed while the tab is visible. It keeps the lists live: a change makes the queries that it concerns stale, at most every
 * `pauseMs`, and those that are shown are read again. While the feed is cut off, lists poll.
 */
import type { FeedEntryType, RivuletClient } from '@rivulet/client'
import { useEffect, useSyncExternalStore } from 'react'
import { queries } from './queries.ts'

const pauseMs = 400
const cutOffMs = 2_000

const askingTypes: readonly FeedEntryType[] = ['turn.waiting', 'turn.resumed', 'turn.finished', 'task.deleted']

let isLive = false
const listeners = new Set<() => void>()

/** How often a list is read that the feed keeps live: not at all while it does. The client takes a connection that is silent for 45 s for cut off. */
export function useFeedPace(): number | false {
  return useSyncExternalStore(subscribe, () => (isLive ? false : cutOffMs))
}

export function useFollowedFeed(client: RivuletClient, isAllowed: boolean): void {
  useEffect(() => {
    if (!isAllowed) return
    const leaving = new AbortController()
    void follow(client, leaving.signal).catch(() => setLive(false))
    return () => {
      leaving.abort()
      setLive(false)
    }
  }, [client, isAllowed])
}

async function follow(client: RivuletClient, signal: AbortSignal): Promise<void> {
  const stale = new Set<'tasks' | 'waits'>()
  let timer: ReturnType<typeof setTimeout> | undefined
  signal.addEventListener('abort', () => clearTimeout(timer))
  const onStatus = (status: 'live' | 'waiting') => {
    if (signal.aborted) return
    setLive(status === 'live')
    if (status === 'live') note('tasks', 'waits')
  }
  for await (const { type } of client.feed.follow({ signal, onStatus })) {
    if (askingTypes.includes(type)) note('tasks', 'waits')
    else note('tasks')
  }

  function note(...names: ('tasks' | 'waits')[]): void {
    for (const name of names) stale.add(name)
    timer ??= setTimeout(refresh, pauseMs)
  }

  function refresh(): void {
    timer = undefined
    for (const name of stale) {
      // A read that is under way may have begun before the change. It is not aborted, because then a busy feed would let none of them end.
      if (queries.isFetching({ queryKey: [name] }) > 0) continue
      stale.delete(name)
      void queries.invalidateQueries({ queryKey: [name] })
    }
    if (stale.size > 0) timer = setTimeout(refresh, pauseMs)
  }
}

function setLive(next: boolean): void {
  if (isLive === next) return
  isLive = next
  for (const listener of [...listeners]) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
