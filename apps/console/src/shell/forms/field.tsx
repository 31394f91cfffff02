/** A labelled field of a form, with a note below it. */
import type { ReactNode } from 'react'

export const fieldLook = 'w-full rounded-lg border border-line-strong bg-page px-3 py-2'

export function Field({ label, note, children }: { label: string; note?: string | undefined; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is what it is given to hold
    <label className="block">
      <span className="mb-1 block font-medium">{label}</span>
      {children}
      {note && <span className="mt-1 block text-[13px] text-soft">{note}</span>}
    </label>
  )
}

/** What is wrong with what was sent. */
export function FormError({ error }: { error: string | null }) {
  if (error === null) return null
  return (
    <p role="alert" className="text-[13px] text-bad">
      {error}
    </p>
  )
}
