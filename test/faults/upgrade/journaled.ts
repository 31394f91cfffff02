/**
 * Part of the agent files of the version before: they are copied into the folder of its packages, and built there.
 *
 * Programs of packages have no failpoints, so the agent itself writes to the JOURNAL of its worker which attempts it ran.
 */
import { appendFileSync } from 'node:fs'
import type { AgentDefinition } from '@rivulet/worker'
import type { Run } from '../checker/history.ts'

export function journaled(agent: AgentDefinition): AgentDefinition {
  return {
    ...agent,
    run: turn => {
      const ran: Run = { pid: process.pid, task: turn.task.id, turnNumber: turn.number, attempt: turn.attempt }
      appendFileSync(`${process.env.JOURNAL}/${process.pid}.ndjson`, `${JSON.stringify({ ran })}\n`)
      return agent.run(turn)
    },
  }
}
