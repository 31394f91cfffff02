/** The latest inputs of an agent, to be sent again or to begin with. */
import type { ContentOf } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { FormError, fieldLook } from '../shell/forms/field.tsx'
import { textOf, usePolled } from '../shell/queries.ts'
import { useSession } from '../shell/session.tsx'
import { draftOf, type TaskDraft } from './task-draft.ts'
import { cutText, titleOf } from './task-title.ts'

const mostShown = 10

export function RecentInputs({
  agent,
  onChoose,
}: {
  agent: string
  onChoose: (given: Partial<TaskDraft>, files: readonly ContentOf<'media'>[]) => void
}) {
  const client = useClient()
  const { may } = useSession()
  const canRead = may('tasks:read')
  const [error, setError] = useState<string | null>(null)
  const { value } = usePolled(
    ['recent-inputs', agent],
    async signal => (canRead ? (await client.tasks.summaries({ agent, limit: mostShown }, { signal })).data : []),
    60_000,
  )
  const tasks = value?.filter(({ title }) => title !== undefined) ?? []
  if (tasks.length === 0) return null
  return (
    <>
      <label className="block text-[13px]">
        <span className="sr-only">Recent inputs</span>
        <select value="" onChange={event => void choose(event.target.value)} className={fieldLook}>
          <option value="">Recent inputs …</option>
          {tasks.map(task => (
            <option key={task.id} value={task.id}>
              {cutText(titleOf(task), 80)}
            </option>
          ))}
        </select>
      </label>
      <FormError error={error} />
    </>
  )

  /** Reads the whole task, because a list has only the beginning of its input. */
  async function choose(id: string): Promise<void> {
    setError(null)
    try {
      const task = client.tasks.get(id)
      const [{ task: stored }, { input, inputs = input ? [input] : [] }] = await Promise.all([task.detail(), task.getTurn(1)])
      const { given, files } = draftOf(stored, inputs)
      onChoose(given, files)
    } catch (reason) {
      setError(textOf(reason))
    }
  }
}
