/** The spans of a task as the page has it, with its steps and the attempts of turns that took several. */
import type { Attempt, Step, TaskHandle } from '@rivulet/client'
import { useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { usePolled } from '../../shell/queries.ts'
import { useSession } from '../../shell/session.tsx'
import { attemptsQuery } from '../../transcript/earlier/use-attempts.ts'
import type { Span } from './span.ts'
import { type Known, spansOf } from './spans.ts'

const noSteps: readonly Step[] = []

export function useSpans(task: TaskHandle | null, { turns, messages }: Pick<Known, 'turns' | 'messages'>): Span[] {
  const { shared } = useSession()
  // A shared link may not read them.
  const readSteps = async (signal: AbortSignal) => (shared || !task ? noSteps : task.steps({ signal }))
  const { value: steps } = usePolled(['steps', task?.id], readSteps, 5_000)
  const several = useMemo(() => turns.filter(({ attempt }) => attempt > 1), [turns])
  const attempts = useQueries({ queries: several.map(({ number, attempt }) => attemptsQuery(task, number, attempt)), combine: dataOf })
  return useMemo(() => {
    const byTurn = new Map(several.map(({ number }, place) => [number, attempts[place] ?? []]))
    return spansOf({ turns, messages, steps: steps ?? noSteps, attempts: byTurn })
  }, [turns, messages, steps, attempts, several])
}

function dataOf(results: readonly { data?: readonly Attempt[] | undefined }[]): (readonly Attempt[] | undefined)[] {
  return results.map(({ data }) => data)
}
