/** The turns of the tasks in sight, for what a list does not say: what they were asked, how long they took, what they used. */
import type { Task, Turn } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useEffect, useRef, useState } from 'react'

const settleMs = 120
const atOnce = 4
const mostKept = 2_000

type Known = { updatedAt: string; turns: readonly Turn[] }

export function useTurns(tasks: readonly Task[]): (id: string) => readonly Turn[] | undefined {
  const client = useClient()
  const known = useRef(new Map<string, Known>())
  const [, setVersion] = useState(0)
  const wanted = tasks
    .filter(({ id, updatedAt }) => known.current.get(id)?.updatedAt !== updatedAt)
    .map(({ id, updatedAt }) => `${id} ${updatedAt}`)
    .join(',')

  useEffect(() => {
    if (wanted === '') return
    const leaving = new AbortController()
    const queue = wanted.split(',').map(pair => pair.split(' ') as [string, string])
    // Do not load rows that scroll past.
    const timer = setTimeout(() => {
      for (let lane = 0; lane < atOnce; lane += 1) void work()
    }, settleMs)
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }

    async function work(): Promise<void> {
      for (let next = queue.shift(); next && !leaving.signal.aborted; next = queue.shift()) {
        const [id, updatedAt] = next
        try {
          const { turns } = await client.tasks.get(id).detail({ signal: leaving.signal })
          keep(id, { updatedAt, turns })
        } catch {
          // The task was deleted, or the server is unavailable. The list shows either at its next poll.
        }
      }
    }

    function keep(id: string, found: Known): void {
      known.current.delete(id)
      known.current.set(id, found)
      const [oldest] = known.current.keys()
      if (known.current.size > mostKept && oldest !== undefined) known.current.delete(oldest)
      setVersion(version => version + 1)
    }
  }, [client, wanted])

  return id => known.current.get(id)?.turns
}
