/** A tool call and its result: the arguments as they stream, the result, and how long the call took. */
import type { ContentOf, Json, Message } from '@rivulet/client'
import { memo, type ReactNode, useState } from 'react'
import { summaryOf } from '../../json/json-summary.ts'
import { JsonTree } from '../../json/json-tree.tsx'
import { ChevronIcon, ToolIcon } from '../../shell/elements/icons.tsx'
import { useNow } from '../../shell/hooks/use-now.ts'
import { duration } from '../../shell/human-units.ts'
import { PlainText } from './plain-text.tsx'
import { type CallState, callStateOf } from './tool-call.ts'

type ToolCardProps = {
  request: Message | null
  response: Message | null
  /** The turn has ended. */
  isOver: boolean
}

export const ToolCard = memo(({ request, response, isOver }: ToolCardProps) => {
  const asked = request?.content.type === 'tool_request' ? request.content : null
  const responded = response?.content.type === 'tool_response' ? response.content : null
  const state = callStateOf(request, response, isOver)
  const [choice, setChoice] = useState<boolean | null>(null)
  const isOpen = choice ?? !['done', 'unanswered'].includes(state.phase)
  const name = asked?.name || responded?.name || 'tool'
  return (
    <section aria-label={`Tool ${name}`} className="overflow-hidden rounded-lg border border-line bg-panel text-[13px]">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setChoice(!isOpen)}
        className="flex w-full items-center gap-2 px-3 py-2 text-left hover:bg-well"
      >
        <span className="text-soft">
          <ToolIcon />
        </span>
        <span className="min-w-0 truncate font-mono font-medium">{name}</span>
        <span className="min-w-0 shrink-[9] grow basis-0 truncate font-mono text-faint">
          {isOpen || !asked ? '' : inShort(asked.arguments)}
        </span>
        <Phase state={state} />
        <span className={`text-faint transition-transform ${isOpen ? 'rotate-90' : ''}`}>
          <ChevronIcon />
        </span>
      </button>
      {isOpen && (
        <div className="space-y-3 border-t border-line px-3 py-2.5">
          {asked && <Arguments content={asked} />}
          {responded && <ToolResult content={responded} isOpen={response?.status === 'streaming'} />}
          {state.problem && <p className="text-bad">{state.problem}</p>}
        </div>
      )}
    </section>
  )
})

function inShort(args: Json): string {
  return typeof args === 'object' && args !== null ? summaryOf(args, false) : JSON.stringify(args)
}

function Phase({ state: { phase, startedAt, tookMs } }: { state: CallState }) {
  const now = useNow(phase === 'running' ? 200 : null)
  const ms = tookMs ?? (phase === 'running' && startedAt !== null ? now - startedAt : null)
  const words = phaseWords[phase]
  const look = phase === 'failed' ? 'text-bad' : phase === 'running' || phase === 'asking' ? 'text-accent' : 'text-soft'
  return (
    <span className={`shrink-0 whitespace-nowrap tabular-nums ${look}`}>
      {words}
      {words && ms !== null && ' · '}
      {ms !== null && duration(ms)}
    </span>
  )
}

const phaseWords: Record<CallState['phase'], string> = {
  asking: 'writing arguments',
  waiting: 'waiting',
  unanswered: 'no answer',
  running: 'running',
  done: '',
  failed: 'failed',
  stopped: 'stopped',
}

function Arguments({ content: { raw, arguments: args } }: { content: ContentOf<'tool_request'> }) {
  return (
    <Part title="Arguments">
      {raw === undefined ? <JsonTree value={args} /> : <PlainText text={raw} className="font-mono" isGrowing />}
    </Part>
  )
}

function ToolResult({ content: { content, isError }, isOpen }: { content: ContentOf<'tool_response'>; isOpen: boolean }) {
  if (content === null && isOpen) return null
  return (
    <Part title={isOpen ? 'Progress' : isError ? 'Error' : 'Result'} look={isError ? 'text-bad' : ''}>
      <Value value={content} isGrowing={isOpen} />
    </Part>
  )
}

function Value({ value, isGrowing }: { value: Json; isGrowing: boolean }) {
  return typeof value === 'string' ? <PlainText text={value} className="font-mono" isGrowing={isGrowing} /> : <JsonTree value={value} />
}

function Part({ title, look = '', children }: { title: string; look?: string; children: ReactNode }) {
  return (
    <div>
      <h2 className={`mb-0.5 text-xs font-medium ${look || 'text-faint'}`}>{title}</h2>
      <div className={`max-h-80 overflow-auto font-mono ${look}`}>{children}</div>
    </div>
  )
}
