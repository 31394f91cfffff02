/** The webhooks: their addresses, what they hear of, and whether their deliveries arrive. */
import type { Webhook } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { ConfirmDialog } from '../shell/elements/confirm-dialog.tsx'
import { SecretDialog } from '../shell/forms/secret-dialog.tsx'
import { useDeed } from '../shell/hooks/use-deed.ts'
import { usePolled } from '../shell/queries.ts'
import { DeliveriesDialog } from './deliveries-dialog.tsx'
import { NewWebhookDialog } from './new-webhook-dialog.tsx'
import { Section } from './section.tsx'
import { WebhookHealth } from './webhook-health.tsx'

type Open = { dialog: 'new' } | { dialog: 'deliveries' | 'delete'; webhook: Webhook } | { dialog: 'secret'; secret: string } | null

export function WebhookSection() {
  const client = useClient()
  const state = usePolled(['webhooks'], signal => client.webhooks.list({}, { signal }), 5_000)
  const { error, attempt } = useDeed(state.refresh)
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  return (
    <Section
      title="Webhooks"
      kind="webhook"
      caption="Webhooks, with what they hear of"
      columns={['Address', 'Events', 'Agent']}
      empty="No webhooks yet. The server calls a webhook when tasks and turns change."
      {...{ state, error }}
      onNew={() => setOpen({ dialog: 'new' })}
      nameOf={({ url }) => url}
      look={{ name: 'Deliveries', open: webhook => setOpen({ dialog: 'deliveries', webhook }) }}
      cells={webhook => (
        <>
          <td className="min-w-48 [overflow-wrap:anywhere]">{webhook.url}</td>
          <td className="min-w-32 text-[13px] text-soft">{webhook.events.join(', ')}</td>
          <td className="text-soft">{webhook.agent ?? 'all'}</td>
          <td>
            <WebhookHealth webhook={webhook} />
          </td>
        </>
      )}
      actions={webhook => [
        webhook.status === 'active'
          ? { name: 'Disable', choose: () => attempt(() => client.webhooks.change(webhook.id, { status: 'disabled' })) }
          : { name: 'Enable', choose: () => attempt(() => client.webhooks.change(webhook.id, { status: 'active' })) },
        { name: 'New secret', choose: () => attempt(() => rotate(webhook)) },
        { name: 'Delete', isDanger: true, choose: () => setOpen({ dialog: 'delete', webhook }) },
      ]}
    >
      {open?.dialog === 'new' && (
        <NewWebhookDialog
          onClose={close}
          onDone={secret => {
            state.refresh()
            setOpen({ dialog: 'secret', secret })
          }}
        />
      )}
      {open?.dialog === 'secret' && (
        <SecretDialog
          title="The secret of the webhook"
          note="It signs the deliveries. Copy it now, because no page can show it again."
          copy="Copy the secret"
          secret={open.secret}
          onClose={close}
        />
      )}
      {open?.dialog === 'deliveries' && <DeliveriesDialog webhook={open.webhook} onClose={close} />}
      {open?.dialog === 'delete' && (
        <ConfirmDialog
          title="Delete this webhook?"
          action="Delete"
          onClose={close}
          onConfirm={() => attempt(() => client.webhooks.remove(open.webhook.id))}
        >
          The server no longer calls {open.webhook.url}, and the list of its deliveries is deleted.
        </ConfirmDialog>
      )}
    </Section>
  )

  async function rotate({ id }: Webhook): Promise<void> {
    const { secret } = await client.webhooks.change(id, { secret: true })
    if (secret) setOpen({ dialog: 'secret', secret })
  }
}
