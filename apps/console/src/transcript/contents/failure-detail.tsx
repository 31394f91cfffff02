/** What an agent threw, for a tab whose key may know it: events tell every viewer the same, and leave it out. */
import { useClient } from '@rivulet/client/react'
import { useEffect, useState } from 'react'

export function FailureDetail({ task, turnNumber }: { task: string; turnNumber: number }) {
  const client = useClient()
  const [detail, setDetail] = useState<string | null>(null)

  useEffect(() => {
    const leaving = new AbortController()
    client.tasks
      .get(task)
      .detail({ signal: leaving.signal })
      .then(({ turns }) => setDetail(turns.find(({ number }) => number === turnNumber)?.error?.detail ?? null))
      // The page already shows the public text of the error.
      .catch(() => {})
    return () => leaving.abort()
  }, [client, task, turnNumber])

  return detail && <span className="mt-1 block whitespace-pre-wrap break-words font-mono text-xs">{detail}</span>
}
