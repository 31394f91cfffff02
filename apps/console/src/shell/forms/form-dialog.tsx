/** A form in a window. It sends one request at a time and shows why it was rejected; `onSubmit` closes it. */
import { type FormEvent, type HTMLAttributes, useState } from 'react'
import { Button } from '../elements/button.tsx'
import { Dialog } from '../elements/dialog.tsx'
import { textOf } from '../queries.ts'
import { FormError } from './field.tsx'

type FormDialogProps = Omit<HTMLAttributes<HTMLFormElement>, 'onSubmit'> & {
  title: string
  /** The name of the button that submits the form. */
  action: string
  canSubmit?: boolean
  onClose: () => void
  /** @param text the trimmed value of a field */
  onSubmit: (text: (name: string) => string, fields: FormData) => Promise<void> | void
}

export function FormDialog({ title, action, canSubmit = true, onClose, onSubmit, className = '', children, ...rest }: FormDialogProps) {
  const [error, setError] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit} className={`space-y-4 ${className}`} {...rest}>
        {children}
        <FormError error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!canSubmit || isSending}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    setError(null)
    setSending(true)
    try {
      await onSubmit(name => String(fields.get(name) ?? '').trim(), fields)
    } catch (reason) {
      setError(textOf(reason))
    }
    setSending(false)
  }
}
