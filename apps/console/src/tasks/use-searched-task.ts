/** What the server knows by exactly this name or id, wherever in the list it is. */
import type { Task } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useEffect, useState } from 'react'

const settleMs = 250
const none: readonly Task[] = []

export function useSearchedTask(search: string): readonly Task[] {
  const client = useClient()
  const [found, setFound] = useState(none)
  const wanted = search.trim()
  useEffect(() => {
    setFound(none)
    if (wanted === '') return
    const leaving = new AbortController()
    const { signal } = leaving
    const timer = setTimeout(() => {
      const isId = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(wanted)
      const asked = isId
        ? client.tasks
            .get(wanted.toLowerCase())
            .detail({ signal })
            .then(({ task }) => [task])
        : client.tasks.list({ name: wanted, limit: 20 }, { signal }).then(({ data }) => data)
      asked.then(setFound, () => {})
    }, settleMs)
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }
  }, [client, wanted])
  return found
}
