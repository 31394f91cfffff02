/** The page for an address that no route has. */
import { Link } from './elements/link.tsx'
import { usePageTitle } from './hooks/use-page-title.ts'
import { listPath } from './route.ts'

export function MissingPage() {
  usePageTitle('No such page')
  return (
    <div className="grid h-full place-items-center p-6 text-center">
      <div>
        <h1 className="text-lg font-semibold">There is no such page</h1>
        <Link to={listPath()} className="mt-4 inline-block text-accent underline">
          All tasks
        </Link>
      </div>
    </div>
  )
}
