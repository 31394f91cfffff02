/** The filters that hold, each as a chip that removes it, and the views that a person has saved under a name in this browser. */
import { type FormEvent, useState } from 'react'
import { Button } from '../../shell/elements/button.tsx'
import { Dialog } from '../../shell/elements/dialog.tsx'
import { CloseIcon } from '../../shell/elements/icons.tsx'
import { Link } from '../../shell/elements/link.tsx'
import { Field, fieldLook } from '../../shell/forms/field.tsx'
import { useStored } from '../../shell/hooks/use-stored.ts'
import { setQuery } from '../../shell/route.ts'
import { chipsIn } from './task-filters.ts'

type View = { name: string; address: string }

const chip = 'inline-flex max-w-full items-center rounded-full border text-[13px]'

/** @param address the query of the page */
export function FilterBar({ address, onClear }: { address: string; onClear: () => void }) {
  const chips = chipsIn(address)
  const [stored, store] = useStored('views', localStorage)
  const views = viewsIn(stored)
  const [isSaving, setSaving] = useState(false)
  const isSaved = views.some(view => view.address === address)
  if (chips.length === 0 && views.length === 0) return null
  return (
    <div className="flex w-full flex-wrap items-center gap-1.5">
      {views.map(view => (
        <span
          key={view.name}
          className={`${chip} ${view.address === address ? 'border-accent bg-accent-well text-accent' : 'border-line bg-panel'}`}
        >
          <Link to={`/${view.address}`} aria-current={view.address === address ? 'true' : undefined} className="truncate py-0.5 pl-2.5">
            {view.name}
          </Link>
          <RemoveButton label={`Delete the view ${view.name}`} onClick={() => keep(views.filter(({ name }) => name !== view.name))} />
        </span>
      ))}
      {views.length > 0 && chips.length > 0 && <span className="mx-1 h-4 w-px bg-line" />}
      {chips.map(({ name, label }) => (
        <span key={name} className={`${chip} border-line bg-well`}>
          <span className="truncate py-0.5 pl-2.5">{label}</span>
          <RemoveButton label={`Remove the filter ${label}`} onClick={() => remove(name)} />
        </span>
      ))}
      {chips.length > 0 && (
        <Button kind="quiet" className="text-[13px]" onClick={() => remove(...chips.map(({ name }) => name))}>
          Clear all
        </Button>
      )}
      {chips.length > 0 && !isSaved && (
        <Button kind="quiet" className="text-[13px]" onClick={() => setSaving(true)}>
          Save this view
        </Button>
      )}
      {isSaving && <SaveDialog onClose={() => setSaving(false)} onSave={save} />}
    </div>
  )

  function remove(...names: string[]): void {
    if (names.includes('search')) onClear()
    setQuery(Object.fromEntries(names.map(name => [name, null])))
  }

  function save(name: string): void {
    keep([...views.filter(view => view.name !== name), { name, address }])
    setSaving(false)
  }

  function keep(next: readonly View[]): void {
    store(next.length === 0 ? '' : JSON.stringify(next))
  }
}

function RemoveButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" aria-label={label} onClick={onClick} className="rounded-full p-1 text-soft hover:text-ink [&_svg]:size-3.5">
      <CloseIcon />
    </button>
  )
}

function SaveDialog({ onClose, onSave }: { onClose: () => void; onSave: (name: string) => void }) {
  const [name, setName] = useState('')
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" note="It is kept in this browser. Another person gets the same list by its address.">
          <input data-first value={name} maxLength={60} onChange={event => setName(event.target.value)} className={fieldLook} />
        </Field>
        <div className="mt-4 flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={name.trim() === ''}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  )

  function submit(event: FormEvent): void {
    event.preventDefault()
    if (name.trim() !== '') onSave(name.trim())
  }
}

function viewsIn(stored: string): readonly View[] {
  try {
    return JSON.parse(stored)
  } catch {
    return []
  }
}
