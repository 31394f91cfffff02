/** The chosen span: when it was, what it used, what it got, what it made, and what went wrong. */
import type { Content } from '@rivulet/client'
import type { ReactNode } from 'react'
import { JsonTree } from '../../json/json-tree.tsx'
import { Button } from '../../shell/elements/button.tsx'
import { CloseIcon } from '../../shell/elements/icons.tsx'
import { Link } from '../../shell/elements/link.tsx'
import { count, duration, money } from '../../shell/human-units.ts'
import { taskPath } from '../../shell/route.ts'
import { contentText } from '../../transcript/content-text.ts'
import { PlainText } from '../../transcript/contents/plain-text.tsx'
import type { Span } from './span.ts'

type SpanDetailProps = {
  span: Span
  /** When the task began. */
  start: number
  /** Shows the transcript as it was then; null where the log has it no more. */
  onGoTo: (() => void) | null
  onClose: () => void
}

export function SpanDetail({ span, start, onGoTo, onClose }: SpanDetailProps) {
  const { kind, label, from, begins, to, model, tokens, cost, error, input, output } = span
  const otherTask = span.child ?? span.task
  const lead = begins - from
  const facts = [
    `${kind === label ? '' : `${kind}, `}${duration(from - start)} after the beginning`,
    to === null ? 'goes on' : duration(to - from),
    lead > 0 ? `${duration(lead)} of it before ${kind === 'tool' ? 'it ran' : 'the first word'}` : '',
    model && model !== label ? model : '',
    tokens > 0 ? `${count(tokens)} tokens` : '',
    cost ? money(cost) : '',
  ].filter(Boolean)
  return (
    <section aria-label="Chosen span" className="min-h-0 grow overflow-auto px-4 py-2 text-[13px]">
      <header className="flex items-center gap-2">
        <h3 className="min-w-0 truncate font-medium">{label}</h3>
        <span className="grow" />
        {otherTask && (
          <Link to={taskPath(otherTask)} className="text-accent hover:underline">
            Open the task
          </Link>
        )}
        {onGoTo && (
          <Button kind="quiet" className="text-[13px]" onClick={onGoTo}>
            Transcript as of then
          </Button>
        )}
        <Button kind="quiet" aria-label="Close the span" onClick={onClose} className="px-2">
          <CloseIcon />
        </Button>
      </header>
      <p className="text-soft tabular-nums">{facts.join(' · ')}</p>
      {error && (
        <Part title="Error" look="text-bad">
          <p className="[overflow-wrap:anywhere]">
            {error.code}: {error.message}
          </p>
          {error.detail && <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{error.detail}</p>}
        </Part>
      )}
      <Contents title="Input" contents={input} />
      <Contents title="Output" contents={output} />
    </section>
  )
}

function Contents({ title, contents }: { title: string; contents: readonly Content[] }) {
  if (contents.length === 0) return null
  return (
    <Part title={title}>
      {contents.map((content, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are in the order of the transcript, and do not move
        <div key={place} className="mb-1">
          {content.type === 'data' ? <JsonTree value={content.data} /> : <PlainText text={contentText(content)} />}
        </div>
      ))}
    </Part>
  )
}

function Part({ title, look = '', children }: { title: string; look?: string; children: ReactNode }) {
  return (
    <section aria-label={title} className={`mt-2 ${look}`}>
      <h4 className={`text-xs font-medium ${look || 'text-faint'}`}>{title}</h4>
      <div className="font-mono text-xs">{children}</div>
    </section>
  )
}
