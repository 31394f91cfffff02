/** The webhooks: their addresses, what they hear of, and whether their deliveries arrive. */
import type { Webhook } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { ConfirmDialog } from '../shell/elements/confirm-dialog.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { MoreIcon } from '../shell/elements/icons.tsx'
import { Menu } from '../shell/elements/menu.tsx'
import { Table } from '../shell/elements/page-frame.tsx'
import { SecretBox } from '../shell/forms/secret-box.tsx'
import { usePolled } from '../shell/queries.ts'
import { useSession } from '../shell/session.tsx'
import { DeliveriesDialog } from './deliveries-dialog.tsx'
import { NewWebhookDialog } from './new-webhook-dialog.tsx'
import { SectionHead } from './section-head.tsx'
import { useDeed } from './use-deed.ts'

type Open = { dialog: 'new' } | { dialog: 'deliveries' | 'delete'; webhook: Webhook } | { dialog: 'secret'; secret: string } | null

export function WebhookSection() {
  const client = useClient()
  const { may } = useSession()
  const state = usePolled(['webhooks'], signal => client.webhooks.list({}, { signal }), 5_000)
  const { error, attempt } = useDeed(state.refresh)
  const [open, setOpen] = useState<Open>(null)
  const webhooks = state.value?.data ?? []
  const close = () => setOpen(null)
  return (
    <section aria-label="Webhooks">
      <SectionHead title="Webhooks" action="New webhook" onAction={() => setOpen({ dialog: 'new' })} {...{ state, error }} />
      {state.value && (
        <Table
          caption="Webhooks, with what they hear of"
          columns={['Address', 'Events', 'Agent', 'State', 'Actions']}
          empty={webhooks.length === 0 ? 'No webhooks yet. The server calls a webhook when tasks and turns change.' : null}
        >
          {webhooks.map(webhook => (
            <tr key={webhook.id}>
              <td className="min-w-48 [overflow-wrap:anywhere]">{webhook.url}</td>
              <td className="min-w-32 text-[13px] text-soft">{webhook.events.join(', ')}</td>
              <td className="text-soft">{webhook.agent ?? 'all'}</td>
              <td className={webhook.status === 'active' ? 'text-good' : 'text-warn'}>{webhook.status}</td>
              <td>
                <span className="flex items-center gap-1">
                  <Button kind="quiet" onClick={() => setOpen({ dialog: 'deliveries', webhook })}>
                    Deliveries
                  </Button>
                  {may('tasks:write') && (
                    <Menu
                      label={`Actions of ${webhook.url}`}
                      items={[
                        webhook.status === 'active'
                          ? { name: 'Disable', choose: () => attempt(() => client.webhooks.change(webhook.id, { status: 'disabled' })) }
                          : { name: 'Enable', choose: () => attempt(() => client.webhooks.change(webhook.id, { status: 'active' })) },
                        { name: 'New secret', choose: () => attempt(() => rotate(webhook)) },
                        { name: 'Delete', isDanger: true, choose: () => setOpen({ dialog: 'delete', webhook }) },
                      ]}
                    >
                      <MoreIcon />
                    </Menu>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
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
        <Dialog title="The secret of the webhook" onClose={close}>
          <p className="text-soft">It signs the deliveries. Copy it now, because no page can show it again.</p>
          <SecretBox label="Copy the secret" secret={open.secret} />
          <div className="mt-4 flex justify-end">
            <Button kind="primary" onClick={close}>
              Done
            </Button>
          </div>
        </Dialog>
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
    </section>
  )

  async function rotate({ id }: Webhook): Promise<void> {
    const { secret } = await client.webhooks.change(id, { secret: true })
    if (secret) setOpen({ dialog: 'secret', secret })
  }
}
