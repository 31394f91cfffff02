/** Where clients of other protocols reach an agent: the address, and for OpenAI the name of the model. */
import { useState } from 'react'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'

export function AgentAddresses({ name }: { name: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)} className="text-xs text-faint hover:text-ink hover:underline">
        Addresses<span className="sr-only"> of {name}</span>
      </button>
      {isOpen && (
        <Dialog title={`Addresses of ${name}`} onClose={() => setOpen(false)}>
          <p className="text-soft">
            A client of one of these protocols uses the agent as it is. If this server wants a key, so does each address.
          </p>
          <dl className="mt-4 space-y-3">
            {addressesOf(location.origin, name).map(({ of, address }) => (
              <div key={of}>
                <dt className="mb-1 font-medium">{of}</dt>
                <dd className="flex items-center gap-1 rounded-lg border border-line bg-well pl-3">
                  <code className="min-w-0 grow break-all py-2 text-xs">{address}</code>
                  <CopyButton label={`Copy: ${of}`} text={() => address} />
                </dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  )
}

function addressesOf(origin: string, name: string): { of: string; address: string }[] {
  return [
    { of: 'OpenAI: base URL', address: `${origin}/openai/v1` },
    { of: 'OpenAI: model', address: name },
    { of: 'AG-UI', address: `${origin}/ag-ui/${name}` },
    { of: 'MCP, where the agent is a tool', address: `${origin}/mcp` },
    { of: 'A2A: card', address: `${origin}/a2a/${name}/.well-known/agent-card.json` },
  ]
}
