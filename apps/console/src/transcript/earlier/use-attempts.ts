/** The attempts of a turn that took more than one, as the server keeps them: after a reload, too. */
import type { Attempt, TaskHandle } from '@rivulet/client'
import { useQuery } from '@tanstack/react-query'

const none: readonly Attempt[] = []

/** @param attempt the latest one: each new one makes the one before it final */
export function useAttempts(task: TaskHandle | null, turnNumber: number, attempt: number): readonly Attempt[] {
  const { data } = useQuery({
    queryKey: ['attempts', task?.id, turnNumber, attempt],
    queryFn: ({ signal }) => task?.attempts(turnNumber, { signal }) ?? none,
    enabled: task !== null && attempt > 1,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data ?? none
}
