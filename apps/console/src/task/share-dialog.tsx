/** Makes a link that shows this task to a person without a key: read-only, and only until its end. */
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { textOf } from '../shell/queries.ts'
import { taskPath } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { addressOf } from '../shell/shared-link.ts'

const lifetimes = [
  { name: '15 minutes', seconds: 900 },
  { name: '1 hour', seconds: 3_600 },
]

export function ShareDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const client = useClient()
  const { hasKey } = useSession()
  const [seconds, setSeconds] = useState(3_600)
  const [made, setMade] = useState<{ link: string; until: string } | null>(null)
  const [error, setError] = useState<string | null>(null)
  return (
    <Dialog title="Share this task" onClose={onClose}>
      <p className="text-soft">
        A person with the link can read this task and nothing else, without a key, until the link expires. Anyone to whom it is passed on
        can do the same.
      </p>
      {!hasKey && <p className="mt-2 text-soft">This server requires no key, so a plain link to this page works as well.</p>}
      <div className="mt-4 flex flex-wrap items-end gap-2">
        <label>
          <span className="mb-1 block font-medium">Expires after</span>
          <select
            value={seconds}
            onChange={event => setSeconds(Number(event.target.value))}
            className="rounded-lg border border-line-strong bg-page px-3 py-1.5"
          >
            {lifetimes.map(({ name, seconds }) => (
              <option key={seconds} value={seconds}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Button data-first kind="primary" onClick={() => void make()}>
          Create the link
        </Button>
      </div>
      {error && (
        <p role="alert" className="mt-3 text-[13px] text-bad">
          {error}
        </p>
      )}
      {made && (
        <div role="status" className="mt-4">
          <div className="flex items-center gap-1 rounded-lg border border-line bg-well pl-3">
            <input
              readOnly
              aria-label="Link"
              value={made.link}
              className="min-w-0 grow bg-transparent py-2 font-mono text-xs outline-none"
            />
            <CopyButton label="Copy the link" text={() => made.link} />
          </div>
          <p className="mt-1 text-[13px] text-soft">Valid until {new Date(made.until).toLocaleString('en-GB')}</p>
        </div>
      )}
    </Dialog>
  )

  async function make(): Promise<void> {
    setError(null)
    try {
      const { token, expiresAt } = await client.tasks.get(id).createToken({ can: 'read', ttlSeconds: seconds, subject: 'shared link' })
      setMade({ link: addressOf(location.origin, taskPath(id), { token, until: expiresAt }), until: expiresAt })
    } catch (reason) {
      setError(textOf(reason))
    }
  }
}
