/** Does one thing at a time to an entry of a list, refreshes the list, and keeps the error. */
import { useState } from 'react'
import { textOf } from '../queries.ts'

export function useDeed(refresh: () => void): { error: string | null; attempt(work: () => Promise<unknown>): void } {
  const [error, setError] = useState<string | null>(null)
  return { error, attempt }

  function attempt(work: () => Promise<unknown>): void {
    setError(null)
    work()
      .catch((reason: unknown) => setError(textOf(reason)))
      .finally(refresh)
  }
}
