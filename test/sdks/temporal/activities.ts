/**
 * An activity of Temporal that runs a task of Rivulet and passes its events on as they come.
 *
 * Temporal starts an activity again when its worker died or its heartbeat failed. The task is created under a key of the activity, so every try finds the
 * same task, and a heartbeat carries the cursor, so the next try goes on behind the last event. A cancel of the activity cancels the task.
 */
import { createClient, type TaskEvent } from '@rivulet/client'
import { Context } from '@temporalio/activity'

export type ActivitiesOptions = {
  url: string
  key?: string
  onEvent?: (event: TaskEvent) => void
}

export type Activities = ReturnType<typeof createActivities>

export function createActivities({ url, key, onEvent }: ActivitiesOptions) {
  const { tasks } = createClient({ url, ...(key !== undefined && { key }) })
  return { runTask }

  /** Returns the text of the task. Only whole values cross the boundary of a workflow, because it is replayed. */
  async function runTask(agent: string, input: string): Promise<string> {
    const context = Context.current()
    const { info, cancellationSignal: signal } = context
    const idempotencyKey = `${info.workflowExecution?.workflowId}/${info.workflowExecution?.runId}/${info.activityId}`
    const task = await tasks.create({ agent, input }, { idempotencyKey })
    const seen: string | undefined = info.heartbeatDetails
    try {
      for await (const event of task.events({ signal, ...(seen && { after: seen }) })) {
        onEvent?.(event)
        if ('cursor' in event) context.heartbeat(event.cursor)
      }
      signal.throwIfAborted()
      return (await task.result({ signal })).text
    } finally {
      if (signal.aborted) await task.cancel('The workflow canceled it')
    }
  }
}
