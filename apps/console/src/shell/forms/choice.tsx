/** A filter of a list: one of several values, or none of them. */
type ChoiceProps = {
  label: string
  value: string | null
  options: readonly string[]
  /** What the choice is without a value. */
  none?: string
  onChange: (value: string | null) => void
}

export function Choice({ label, value, options, none = `Any ${label.toLowerCase()}`, onChange }: ChoiceProps) {
  return (
    <label className="flex items-center rounded-lg border border-line bg-panel">
      <span className="sr-only">{label}</span>
      <select
        value={value ?? ''}
        onChange={event => onChange(event.target.value || null)}
        className="rounded-lg bg-panel px-2.5 py-1.5 text-ink"
      >
        <option value="">{none}</option>
        {options.map(option => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  )
}
