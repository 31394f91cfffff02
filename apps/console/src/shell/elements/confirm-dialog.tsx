/** Asks before something that cannot be undone. The button that changes nothing has the focus. */
import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'

type ConfirmDialogProps = { title: string; action: string; onClose: () => void; onConfirm: () => void; children: ReactNode }

export function ConfirmDialog({ title, action, onClose, onConfirm, children }: ConfirmDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p className="text-soft">{children}</p>
      <div className="mt-4 flex justify-end gap-2">
        <Button data-first onClick={onClose}>
          Back
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            onClose()
            onConfirm()
          }}
        >
          {action}
        </Button>
      </div>
    </Dialog>
  )
}
