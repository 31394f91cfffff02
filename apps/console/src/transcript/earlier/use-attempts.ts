/** The attempts of a turn that took more than one, as the server keeps them: after a reload, too. */
import type { Attempt, TaskHandle } from '@rivulet/client'
import { useQuery } from '@tanstack/react-query'

const none: readonly Attempt[] = []

/** @param attempt the latest one: each new one makes the one before it final */
export function attemptsQuery(task: TaskHandle | null, turnNumber: number, attempt: number) {
  return {
    queryKey: ['attempts', task?.id, turnNumber, attempt],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<readonly Attempt[]> => task?.attempts(turnNumber, { signal }) ?? none,
    enabled: task !== null && attempt > 1,
    staleTime: Number.POSITIVE_INFINITY,
  }
}

export function useAttempts(task: TaskHandle | null, turnNumber: number, attempt: number): readonly Attempt[] {
  return useQuery(attemptsQuery(task, turnNumber, attempt)).data ?? none
}
