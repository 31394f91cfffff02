/** What was sent to a webhook lately, what came of it, and another attempt. */
import type { Delivery, Webhook } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { Button } from '../shell/elements/button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { Link } from '../shell/elements/link.tsx'
import { Table } from '../shell/elements/page-frame.tsx'
import { FormError } from '../shell/forms/field.tsx'
import { useDeed } from '../shell/hooks/use-deed.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'

export function DeliveriesDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const client = useClient()
  const { may } = useSession()
  const state = usePolled(['deliveries', webhook.id], signal => client.webhooks.deliveries(webhook.id, { limit: 50 }, { signal }), 3_000)
  const { error, attempt } = useDeed(state.refresh)
  const now = useNow(1_000)
  return (
    <Dialog title={`Deliveries to ${webhook.url}`} onClose={onClose} isWide>
      <FormError error={error ?? state.error} />
      {state.value && (
        <Table
          caption="The latest deliveries"
          columns={['Event', 'Task', 'State', 'Attempts', 'Created', 'Actions']}
          empty={state.value.data.length === 0 ? 'Nothing was sent to it yet.' : null}
        >
          {state.value.data.map(delivery => (
            <tr key={delivery.id}>
              <td className="whitespace-nowrap">{delivery.type}</td>
              <td>
                <Link to={taskPath(delivery.task)} className="font-mono text-xs text-accent hover:underline">
                  {delivery.task}
                </Link>
              </td>
              <td className={looks[delivery.status]}>
                {delivery.status}
                <span className="block text-xs text-soft">{outcomeOf(delivery, now)}</span>
              </td>
              <td className="tabular-nums">{delivery.attempts}</td>
              <td className="whitespace-nowrap text-soft">{age(now - Date.parse(delivery.createdAt))}</td>
              <td>
                {may('tasks:write') && (
                  <Button kind="quiet" onClick={() => attempt(() => client.webhooks.retry(webhook.id, delivery.id))}>
                    Send again
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Dialog>
  )
}

const looks: Record<Delivery['status'], string> = { pending: 'text-soft', delivered: 'text-good', failed: 'text-bad' }

function outcomeOf({ lastStatus, lastError, nextAt, status }: Delivery, now: number): string {
  const next = status === 'pending' && nextAt ? `next attempt in ${duration(Math.max(0, Date.parse(nextAt) - now))}` : ''
  return [lastStatus === undefined ? (lastError ?? '') : `HTTP ${lastStatus}`, next].filter(Boolean).join(', ')
}
