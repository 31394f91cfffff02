/** Leads from one version of a turn to the next: one that an edit or a retry discarded, and the one that took its place. */
import type { ReactNode } from 'react'
import { BackIcon, ChevronIcon } from '../shell/elements/icons.tsx'

export type VersionPagerProps = { numbers: readonly number[]; shown: number; onShow(latest: number, turnNumber: number): void }

export function VersionPager({ numbers, shown, onShow }: VersionPagerProps) {
  const place = numbers.indexOf(shown)
  const show = (turnNumber: number) => onShow(numbers.at(-1) ?? shown, turnNumber)
  return (
    <fieldset aria-label="Versions of this turn" className="-mb-2 flex items-center justify-end gap-1 text-xs text-soft tabular-nums">
      <Arrow label="Earlier version" to={numbers[place - 1]} onShow={show}>
        <BackIcon />
      </Arrow>
      <span aria-live="polite">
        {place + 1} of {numbers.length}
      </span>
      <Arrow label="Later version" to={numbers[place + 1]} onShow={show}>
        <ChevronIcon />
      </Arrow>
    </fieldset>
  )
}

type ArrowProps = { label: string; to: number | undefined; onShow(turnNumber: number): void; children: ReactNode }

function Arrow({ label, to, onShow, children }: ArrowProps) {
  return (
    <button
      type="button"
      aria-label={label}
      // Not `disabled`, which would take the focus from a person who has come to the last one.
      aria-disabled={to === undefined}
      onClick={() => to !== undefined && onShow(to)}
      className="rounded p-1 hover:bg-well hover:text-ink aria-disabled:opacity-40"
    >
      {children}
    </button>
  )
}
