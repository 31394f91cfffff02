/** The agents and their queues. */
import type { Agent } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { usePolled } from '../shell/queries.ts'

const noAgents: readonly Agent[] = []

export function useAgents(): { agents: readonly Agent[]; error: string | null; updatedAt: number } {
  const client = useClient()
  const { value, error, updatedAt } = usePolled(['agents'], signal => client.agents.list({ signal }), 3_000)
  return { agents: value ?? noAgents, error, updatedAt }
}
