/** Copies a task up to the end of one of its turns, and goes to the copy. */
import { type FoldedTurn, hasEnded } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { type FormEvent, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { Field, FormError, fieldLook } from '../shell/forms/field.tsx'
import { textOf } from '../shell/queries.ts'
import { navigate, taskPath } from '../shell/route.ts'
import { wordsOf } from '../tasks/task-title.ts'

export function isForkable(status: FoldedTurn['status']): boolean {
  return hasEnded(status) && status !== 'discarded'
}

export function ForkDialog({ id, turns, onClose }: { id: string; turns: readonly FoldedTurn[]; onClose: () => void }) {
  const client = useClient()
  const [choices] = useState(() => turns.filter(({ status }) => isForkable(status)).toReversed())
  const [after, setAfter] = useState(choices[0]?.number ?? 1)
  const [input, setInput] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)
  return (
    <Dialog title="Fork this task" onClose={onClose}>
      <form onSubmit={submit} className="space-y-4">
        <p className="text-soft">The copy has the turns up to the one that you choose, and the state after it. This task stays as it is.</p>
        <Field label="After turn">
          <select value={after} onChange={event => setAfter(Number(event.target.value))} className={fieldLook}>
            {choices.map(({ number, input }) => (
              <option key={number} value={number}>
                {number}
                {input && `: ${wordsOf(input).slice(0, 60)}`}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Next input" note="Without one, the copy waits for input.">
          <textarea data-first rows={3} value={input} onChange={event => setInput(event.target.value)} className={fieldLook} />
        </Field>
        <FormError error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={isSending}>
            Fork
          </Button>
        </div>
      </form>
    </Dialog>
  )

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setError(null)
    setSending(true)
    try {
      const { task } = await client.tasks.get(id).fork({ after, ...(input.trim() !== '' && { input }) })
      onClose()
      navigate(taskPath(task.id))
    } catch (reason) {
      setError(textOf(reason))
      setSending(false)
    }
  }
}
