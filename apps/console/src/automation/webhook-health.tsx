/** Whether a webhook works, by its latest deliveries: that it is active says nothing about its address. */
import type { Delivery, Webhook } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { usePolled } from '../shell/queries.ts'

const latest = 20

export function WebhookHealth({ webhook: { id, status } }: { webhook: Webhook }) {
  const client = useClient()
  const { value } = usePolled(['deliveries', id, latest], signal => client.webhooks.deliveries(id, { limit: latest }, { signal }), 5_000)
  if (status === 'disabled') return <span className="text-warn">disabled</span>
  const tried = value?.data.filter(({ attempts }) => attempts > 0) ?? []
  const failed = tried.filter(hasFailed).length
  if (tried.length === 0) return <span className="text-soft">active, nothing sent yet</span>
  if (failed === 0) return <span className="text-good">active</span>
  const isDown = tried[0] !== undefined && hasFailed(tried[0])
  return (
    <span className={isDown ? 'text-bad' : 'text-warn'}>
      {isDown ? 'failing' : 'active'}
      <span className="block text-xs">
        {failed} of the last {tried.length} failed
      </span>
    </span>
  )
}

/** Also one that will be tried again. */
function hasFailed({ status }: Delivery): boolean {
  return status !== 'delivered'
}
