/** The title of a list, the button that adds to it, and whether it is up to date. */
import { Button } from '../shell/elements/button.tsx'
import { PlusIcon } from '../shell/elements/icons.tsx'
import { StaleNote } from '../shell/elements/stale-note.tsx'
import { FormError } from '../shell/forms/field.tsx'
import type { Polled } from '../shell/queries.ts'
import { useSession } from '../shell/session.tsx'

export type SectionHeadProps = {
  title: string
  action: string
  onAction: () => void
  state: Polled<unknown>
  /** Of the last thing that was done here. */
  error: string | null
}

export function SectionHead({ title, action, onAction, state, error }: SectionHeadProps) {
  const { may } = useSession()
  return (
    <>
      <header className="mt-6 flex flex-wrap items-center gap-3">
        <h2 className="grow text-base font-semibold">{title}</h2>
        {may('tasks:write') && (
          <Button kind="primary" onClick={onAction}>
            <PlusIcon />
            {action}
          </Button>
        )}
      </header>
      <StaleNote error={state.error} updatedAt={state.updatedAt} className="mt-3" />
      <div className="mt-2">
        <FormError error={error} />
      </div>
      {state.value === null && !state.error && <p className="mt-4 text-soft">Loading …</p>}
    </>
  )
}
