/** A secret that is shown once. */
import { Button } from '../elements/button.tsx'
import { CopyButton } from '../elements/copy-button.tsx'
import { Dialog } from '../elements/dialog.tsx'

type SecretDialogProps = { title: string; note: string; copy: string; secret: string; onClose: () => void }

export function SecretDialog({ title, note, copy, secret, onClose }: SecretDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p className="text-soft">{note}</p>
      <div className="mt-3 flex items-center gap-1 rounded-lg border border-line bg-well pl-3">
        <code data-first tabIndex={-1} className="min-w-0 grow py-2 font-mono text-xs [overflow-wrap:anywhere]">
          {secret}
        </code>
        <CopyButton label={copy} text={() => secret} />
      </div>
      <div className="mt-4 flex justify-end">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}
