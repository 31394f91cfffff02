/** Stopping: said at once, over when the task is. */
import { useEffect, useState } from 'react'
import { textOf } from '../shell/queries.ts'

export type Stop = { isStopping: boolean; error: string | null; ask(): void }

export function useStop(cancel: (reason?: string) => Promise<unknown>, isBusy: boolean): Stop {
  const [isStopping, setStopping] = useState(false)
  const [error, setError] = useState<string | null>(null)
  useEffect(() => {
    if (!isBusy) setStopping(false)
  }, [isBusy])
  return { isStopping, error, ask }

  function ask(): void {
    if (isStopping) return
    setStopping(true)
    setError(null)
    cancel('Stopped in the console').catch((reason: unknown) => {
      setStopping(false)
      setError(textOf(reason))
    })
  }
}
