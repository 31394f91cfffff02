/** The agents and their queues, refreshed every few seconds while the page is visible. */
import type { Agent } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { usePolled } from '../shell/hooks/use-polled.ts'

const noAgents: readonly Agent[] = []

export function useAgents(): { agents: readonly Agent[]; error: string | null } {
  const client = useClient()
  const { value, error } = usePolled(signal => client.agents.list({ signal }), 3_000)
  return { agents: value ?? noAgents, error }
}
