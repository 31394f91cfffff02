/** Whose page this is, and the way out. */
import { SignOutIcon } from './elements/icons.tsx'
import { useSession } from './session.tsx'

export function AccountMark() {
  const { hasKey, caller, shared, signOut } = useSession()
  if (shared)
    return (
      <p className="px-2 text-xs text-soft">
        Shared with you, read-only
        {shared.until && `, until ${new Date(shared.until).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}`}
      </p>
    )
  if (!hasKey) return null
  return (
    <div className="flex min-w-0 items-center gap-1 md:mb-1 md:px-2">
      <p className="min-w-0 grow truncate text-xs text-soft" title={caller ? `${caller.scopes.join(', ')}` : undefined}>
        <span className="block truncate font-medium text-ink">{caller?.tenant ?? '…'}</span>
        <span className="block truncate font-mono text-faint max-md:hidden">{caller?.key ?? ''}</span>
      </p>
      <button
        type="button"
        onClick={signOut}
        aria-label="Sign out"
        title="Sign out of all tabs"
        className="rounded-lg p-2 text-soft hover:bg-well hover:text-ink"
      >
        <SignOutIcon />
      </button>
    </div>
  )
}
