/** The filters that have no place of their own above the list. */
import { useState } from 'react'
import { Field, fieldLook } from '../../shell/forms/field.tsx'
import { FormDialog } from '../../shell/forms/form-dialog.tsx'
import { setQuery } from '../../shell/route.ts'
import { periods } from './task-filters.ts'

export function FilterDialog({ address, onClose }: { address: string; onClose: () => void }) {
  const [given] = useState(() => new URLSearchParams(address))
  return (
    <FormDialog title="Filter tasks" action="Filter" onClose={onClose} onSubmit={filter}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Created within the last">
          <select data-first name="within" defaultValue={given.get('within') ?? ''} className={fieldLook}>
            <option value="">any time</option>
            {periods.map(({ minutes, name }) => (
              <option key={minutes} value={minutes}>
                {name}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Error code">
          <input
            name="error"
            defaultValue={given.get('error') ?? ''}
            placeholder="timeout"
            className={`${fieldLook} font-mono text-[13px]`}
          />
        </Field>
        <Field label="Ran at least, in seconds">
          <input name="min" type="number" min="0" step="any" defaultValue={secondsIn(given.get('min'))} className={fieldLook} />
        </Field>
        <Field label="Ran at most, in seconds">
          <input name="max" type="number" min="0" step="any" defaultValue={secondsIn(given.get('max'))} className={fieldLook} />
        </Field>
        <Field label="Metadata key">
          <input name="key" className={fieldLook} />
        </Field>
        <Field label="Metadata value">
          <input name="value" className={fieldLook} />
        </Field>
      </div>
    </FormDialog>
  )

  function filter(text: (name: string) => string): void {
    setQuery({
      ...{ within: text('within'), error: text('error'), min: millisecondsIn(text('min')), max: millisecondsIn(text('max')) },
      ...(text('key') && { [`metadata.${text('key')}`]: text('value') }),
    })
    onClose()
  }
}

function secondsIn(ms: string | null): string {
  return ms === null || !/^\d+$/.test(ms) ? '' : String(Number(ms) / 1_000)
}

function millisecondsIn(seconds: string): string | null {
  return seconds === '' ? null : String(Math.round(Number(seconds) * 1_000))
}
