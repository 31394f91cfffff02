/** In place of a page that the key may not read. */
import { usePageTitle } from './hooks/use-page-title.ts'

export function AdminsOnly() {
  usePageTitle('Not allowed')
  return (
    <div className="grid h-full place-items-center p-6 text-center">
      <div>
        <h1 className="text-lg font-semibold">This page is for admins</h1>
        <p className="mt-2 max-w-md text-soft">
          It needs a key with the scope <code className="font-mono text-[13px]">admin</code>, which yours does not have.
        </p>
      </div>
    </div>
  )
}
