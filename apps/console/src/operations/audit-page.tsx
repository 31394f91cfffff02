/** The audit log, for a key with the scope `admin`: who changed what, when, and from where. */
import type { AuditEntry } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { Link } from '../shell/elements/link.tsx'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath } from '../shell/route.ts'

export function AuditPage() {
  const client = useClient()
  /** The places of the pages before this one. */
  const [places, setPlaces] = useState<readonly string[]>([])
  const cursor = places.at(-1)
  const state = usePolled(['audit', cursor], signal => client.audit({ cursor, limit: 50 }, { signal }), 10_000)
  const now = useNow(10_000)
  const { data: entries = [], nextCursor = null } = state.value ?? {}
  return (
    <PageFrame title="Audit log" state={state}>
      {state.value && (
        <Table
          caption="Changes, newest first"
          columns={['When', 'Change', 'Of', 'By', 'From', 'Details']}
          empty={entries.length === 0 ? 'Nothing was changed that the audit log records.' : null}
        >
          {entries.map(entry => (
            <tr key={entry.id}>
              <td className="whitespace-nowrap text-soft" title={entry.at}>
                {age(now - Date.parse(entry.at))}
              </td>
              <td className="whitespace-nowrap">{entry.action}</td>
              <td className="max-w-64 font-mono text-xs [overflow-wrap:anywhere]">
                <Target entry={entry} />
                {entry.tenant !== undefined && <span className="block text-faint">{entry.tenant}</span>}
              </td>
              <td className="max-w-48 [overflow-wrap:anywhere]">
                {entry.subject ?? entry.key ?? (entry.via === 'database' ? 'a command' : 'no key')}
                <span className="block text-xs text-faint">{entry.subject ? `token of ${entry.key}` : entry.via}</span>
              </td>
              <td className="text-soft">{entry.address ?? '–'}</td>
              <td className="min-w-40 font-mono text-xs text-soft [overflow-wrap:anywhere]">{JSON.stringify(entry.details)}</td>
            </tr>
          ))}
        </Table>
      )}
      <div className="mt-4 flex justify-end gap-2">
        {places.length > 0 && <Button onClick={() => setPlaces(places.slice(0, -1))}>Newer</Button>}
        {nextCursor !== null && <Button onClick={() => setPlaces([...places, nextCursor])}>Older</Button>}
      </div>
    </PageFrame>
  )
}

function Target({ entry: { action, target } }: { entry: AuditEntry }) {
  const isTask = /^(task\.canceled|token|wait)/.test(action)
  return isTask ? (
    <Link to={taskPath(target)} className="hover:underline">
      {target}
    </Link>
  ) : (
    target
  )
}
