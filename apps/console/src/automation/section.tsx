/** A list of schedules or webhooks: the button that adds to it, a table with the actions on each entry, and whether it is up to date. */
import type { ReactNode } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { MoreIcon, PlusIcon } from '../shell/elements/icons.tsx'
import { Menu, type MenuItem } from '../shell/elements/menu.tsx'
import { Table } from '../shell/elements/page-frame.tsx'
import { StaleNote } from '../shell/elements/stale-note.tsx'
import { FormError } from '../shell/forms/field.tsx'
import type { Polled } from '../shell/queries.ts'
import { useSession } from '../shell/session.tsx'

type SectionProps<T> = {
  title: string
  /** What its entries are called, as in "New webhook". */
  kind: string
  caption: string
  columns: readonly string[]
  /** Shown while there are no entries. */
  empty: string
  state: Polled<{ data: readonly T[] }>
  /** Of the last thing that was done here. */
  error: string | null
  onNew: () => void
  /** Its name for the menu. */
  nameOf: (entry: T) => string
  /** Its cells, but the last. */
  cells: (entry: T) => ReactNode
  /** Opens what it did lately. */
  look: { name: string; open: (entry: T) => void }
  actions: (entry: T) => MenuItem[]
  /** The dialogs. */
  children: ReactNode
}

export function Section<T extends { id: string }>(props: SectionProps<T>) {
  const { title, kind, caption, columns, empty, state, error, onNew, nameOf, cells, look, actions, children } = props
  const { may } = useSession()
  return (
    <section aria-label={title}>
      <header className="mt-6 flex flex-wrap items-center gap-3">
        <h2 className="grow text-base font-semibold">{title}</h2>
        {may('tasks:write') && (
          <Button kind="primary" onClick={onNew}>
            <PlusIcon />
            New {kind}
          </Button>
        )}
      </header>
      <StaleNote error={state.error} updatedAt={state.updatedAt} className="mt-3" />
      <div className="mt-2">
        <FormError error={error} />
      </div>
      {state.value === null && !state.error && <p className="mt-4 text-soft">Loading …</p>}
      {state.value && (
        <Table caption={caption} columns={[...columns, 'State', 'Actions']} empty={state.value.data.length === 0 ? empty : null}>
          {state.value.data.map(entry => (
            <tr key={entry.id}>
              {cells(entry)}
              <td>
                <span className="flex items-center gap-1">
                  <Button kind="quiet" onClick={() => look.open(entry)}>
                    {look.name}
                  </Button>
                  {may('tasks:write') && (
                    <Menu label={`Actions of ${nameOf(entry)}`} items={actions(entry)}>
                      <MoreIcon />
                    </Menu>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {children}
    </section>
  )
}
