/** A secret that is shown once. */
import { CopyButton } from '../elements/copy-button.tsx'

export function SecretBox({ label, secret }: { label: string; secret: string }) {
  return (
    <div className="mt-3 flex items-center gap-1 rounded-lg border border-line bg-well pl-3">
      <code data-first tabIndex={-1} className="min-w-0 grow py-2 font-mono text-xs [overflow-wrap:anywhere]">
        {secret}
      </code>
      <CopyButton label={label} text={() => secret} />
    </div>
  )
}
