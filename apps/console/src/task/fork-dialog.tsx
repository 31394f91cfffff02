/** Copies a task up to the end of one of its turns, and goes to the copy. */
import type { FoldedTurn } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { Field, fieldLook } from '../shell/forms/field.tsx'
import { FormDialog } from '../shell/forms/form-dialog.tsx'
import { navigate, taskPath } from '../shell/route.ts'
import { cutText, wordsOf } from '../tasks/task-title.ts'
import { isForkable } from './forkable.ts'

type ForkDialogProps = {
  id: string
  turns: readonly FoldedTurn[]
  /** The turn that is chosen first. */
  after: number
  onClose: () => void
}

export function ForkDialog({ id, turns, after, onClose }: ForkDialogProps) {
  const client = useClient()
  const [choices] = useState(() => turns.filter(({ status }) => isForkable(status)).toReversed())
  return (
    <FormDialog title="Fork this task" action="Fork" onClose={onClose} onSubmit={fork}>
      <p className="text-soft">The copy has the turns up to the one that you choose, and the state after it. This task stays as it is.</p>
      <Field label="After turn">
        <select name="after" defaultValue={after} className={fieldLook}>
          {choices.map(({ number, input }) => (
            <option key={number} value={number}>
              {number}
              {input && `: ${cutText(wordsOf(input), 60)}`}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Next input" note="Without one, the copy waits for input.">
        <textarea data-first name="input" rows={3} className={fieldLook} />
      </Field>
    </FormDialog>
  )

  async function fork(text: (name: string) => string): Promise<void> {
    const { task } = await client.tasks.get(id).fork({ after: Number(text('after')), ...(text('input') && { input: text('input') }) })
    onClose()
    navigate(taskPath(task.id))
  }
}
