/** The fields of a form. The reason why the server rejected a value is beside its field. */
import type { ReactNode } from 'react'
import type { Draft, FormField } from './form-fields.ts'

export const fieldLook = 'w-full rounded-lg border border-line-strong bg-page px-3 py-2 text-ink'

type WaitFieldsProps = {
  fields: readonly FormField[]
  draft: Draft
  /** By the name of the field. */
  faults: ReadonlyMap<string, string>
  onChange(name: string, value: Draft[string]): void
}

/** The form keeps what it does not draw, and says so. */
export function UndrawnNote({ names }: { names: readonly string[] }) {
  return names.length > 0 && <p className="text-[13px] text-soft">Sent as before, without a field: {names.join(', ')}</p>
}

export function WaitFields({ fields, draft, faults, onChange }: WaitFieldsProps) {
  return fields.map(field => {
    const fault = faults.get(field.name)
    const set = (value: Draft[string]) => onChange(field.name, value)
    if (field.kind === 'choices')
      return (
        <fieldset key={field.name}>
          <legend className="mb-1 font-medium">
            <Label field={field} />
          </legend>
          {field.options.map(option => (
            <label key={option} className="mr-4 inline-flex items-center gap-1.5">
              <input
                type="checkbox"
                checked={chosen(draft, field.name).includes(option)}
                onChange={event => set(field.options.filter(each => (each === option ? event.target.checked : isIn(each))))}
                className="accent-accent"
              />
              {option}
            </label>
          ))}
          <Notes field={field} fault={fault} />
        </fieldset>
      )
    if (field.kind === 'boolean')
      return (
        <label key={field.name} className="block">
          <span className="inline-flex items-center gap-2 font-medium">
            <input
              type="checkbox"
              checked={draft[field.name] === true}
              onChange={event => set(event.target.checked)}
              className="accent-accent"
            />
            {field.label}
          </span>
          <Notes field={field} fault={fault} />
        </label>
      )
    return (
      // biome-ignore lint/a11y/noLabelWithoutControl: the control is what `Control` returns
      <label key={field.name} className="block">
        <span className="mb-1 block font-medium">
          <Label field={field} />
        </span>
        <Control field={field} value={textIn(draft, field.name)} isWrong={fault !== undefined} onChange={set} />
        <Notes field={field} fault={fault} />
      </label>
    )

    function isIn(option: string): boolean {
      return chosen(draft, field.name).includes(option)
    }
  })
}

type ControlProps = {
  field: Exclude<FormField, { kind: 'boolean' | 'choices' }>
  value: string
  isWrong: boolean
  onChange: (value: string) => void
}

function Control({ field, value, isWrong, onChange }: ControlProps): ReactNode {
  const common = { value, required: field.isRequired, 'aria-invalid': isWrong || undefined, className: fieldLook }
  if (field.kind === 'choice')
    return (
      <select {...common} onChange={event => onChange(event.target.value)}>
        <option value="">{field.isRequired ? 'Choose …' : 'None'}</option>
        {field.options.map(option => (
          <option key={option}>{option}</option>
        ))}
      </select>
    )
  if (field.kind === 'text' && field.isLong)
    return <textarea {...common} rows={Math.min(8, value.split('\n').length)} onChange={event => onChange(event.target.value)} />
  const type =
    field.kind === 'number'
      ? { type: 'number', step: field.step }
      : { type: field.type, ...(field.type === 'datetime-local' && { step: 'any' }) }
  return <input {...common} {...type} onChange={event => onChange(event.target.value)} />
}

function Label({ field: { label, isRequired } }: { field: FormField }) {
  return (
    <>
      {label}
      {!isRequired && <span className="font-normal text-faint"> (optional)</span>}
    </>
  )
}

function Notes({ field: { note }, fault }: { field: FormField; fault: string | undefined }) {
  return (
    <>
      {note && <span className="mt-1 block text-[13px] font-normal text-soft">{note}</span>}
      {fault && <span className="mt-1 block text-[13px] font-normal text-bad">{fault}</span>}
    </>
  )
}

function chosen(draft: Draft, name: string): readonly string[] {
  const value = draft[name]
  return Array.isArray(value) ? value : []
}

function textIn(draft: Draft, name: string): string {
  const value = draft[name]
  return typeof value === 'string' ? value : ''
}
