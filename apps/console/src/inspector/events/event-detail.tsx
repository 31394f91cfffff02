/** The chosen event, whole. */
import type { Json } from '@rivulet/client'
import { JsonTree } from '../../json/json-tree.tsx'
import { CopyButton } from '../../shell/elements/copy-button.tsx'
import type { Entry } from '../event-log.ts'

export function EventDetail({ entry: { event, at }, curl }: { entry: Entry; curl: string }) {
  const { cursor, ...rest } = event
  return (
    <section aria-label="Chosen event" className="max-h-[38%] shrink-0 overflow-auto border-t border-line px-4 py-2 text-[13px]">
      <header className="flex items-center gap-2">
        <h3 className="font-mono font-medium">{event.type}</h3>
        <span className="font-mono text-xs text-faint">{cursor}</span>
        {at !== null && <span className="text-xs text-faint">{new Date(at).toLocaleTimeString('en-GB', timeFormat)}</span>}
        <span className="grow" />
        <CopyButton label="Copy as JSON" text={() => JSON.stringify(rest, null, 2)}>
          JSON
        </CopyButton>
        <CopyButton label="Copy as curl" text={() => curl}>
          curl
        </CopyButton>
      </header>
      <div className="mt-1 font-mono text-xs">
        <JsonTree key={cursor} value={rest as unknown as Json} />
      </div>
    </section>
  )
}

const timeFormat: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 }
