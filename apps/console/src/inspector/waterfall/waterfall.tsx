/**
 * Where the time of a task went, a row for each span, on one axis. The pointer shows its time; a part of the time fills the width by the buttons, by Ctrl and
 * the wheel, or by a drag along the axis. A child opens into the rows of its own task.
 */
import { useTasks } from '@rivulet/client/react'
import { memo, type PointerEvent, type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Button } from '../../shell/elements/button.tsx'
import { ChevronIcon } from '../../shell/elements/icons.tsx'
import { count, duration, money } from '../../shell/human-units.ts'
import { placeIn, type Range, ticksIn, zoomed } from './scale.ts'
import type { Outcome, Span, SpanKind } from './span.ts'
import { rangeOf, spansOf } from './spans.ts'

type WaterfallProps = { spans: readonly Span[]; now: number; chosenKey: string | null; onChoose(span: Span): void }

const mostRows = 400
/** The room that the words at a moment of the axis need. */
const tickPx = 56
/** The names on the left and the figures on the right, by the width of the panel. */
const columns =
  'grid grid-cols-[7.5rem_1fr_3.5rem] items-center gap-x-2 @md:grid-cols-[7.5rem_1fr_3.5rem_5.75rem] @2xl:grid-cols-[11rem_1fr_3.5rem_6.5rem]'

export function Waterfall({ spans, now, chosenKey, onChoose }: WaterfallProps) {
  const whole = rangeOf(spans, now)
  const [part, setPart] = useState<Range | null>(null)
  const range = part ?? whole
  const [at, setAt] = useState<number | null>(null)
  const [dragFrom, setDragFrom] = useState<number | null>(null)
  const root = useRef<HTMLElement>(null)
  const axis = useRef<HTMLDivElement>(null)
  const axisPx = useWidth(axis)
  const latest = useRef({ range, whole })
  latest.current = { range, whole }

  // React listens to the wheel passively, and Ctrl with the wheel would zoom the page.
  useEffect(() => {
    const element = root.current
    const turn = (event: WheelEvent) => {
      if (!event.ctrlKey) return
      event.preventDefault()
      const { range, whole } = latest.current
      setPart(zoomed(range, whole, event.deltaY < 0 ? 0.8 : 1.25, momentAt(axis.current, range, event.clientX)))
    }
    element?.addEventListener('wheel', turn, { passive: false })
    return () => element?.removeEventListener('wheel', turn)
  }, [])

  // Without the last one where its words would reach beyond the axis.
  const ticks = ticksIn(range, whole.from, Math.max(1, Math.floor(axisPx / tickPx))).filter(
    tick => (placeIn(range, tick) / 100) * axisPx <= axisPx - tickPx * 0.75,
  )
  const rows = spans.slice(-mostRows)
  return (
    <section
      ref={root}
      aria-label="Where the time went"
      onPointerMove={event => setAt(isBeside(axis.current, event.clientX) ? null : momentAt(axis.current, range, event.clientX))}
      onPointerLeave={() => setAt(null)}
      className="@container relative flex min-h-0 grow flex-col text-xs"
    >
      <div className={`${columns} border-b border-line px-4 py-1`}>
        <span className="flex items-center gap-0.5">
          <ZoomButton label="Zoom in" onClick={() => setPart(zoomed(range, whole, 0.5))}>
            +
          </ZoomButton>
          <ZoomButton label="Zoom out" onClick={() => setPart(zoomed(range, whole, 2))}>
            −
          </ZoomButton>
          {part && (
            <ZoomButton label="Show all of the time" onClick={() => setPart(null)}>
              All
            </ZoomButton>
          )}
        </span>
        <div
          ref={axis}
          onPointerDown={press}
          onPointerUp={release}
          className="relative h-5 cursor-col-resize touch-none text-faint tabular-nums select-none"
        >
          {ticks.map(tick => (
            <span
              key={tick}
              className="absolute top-0.5 border-l border-line-strong pl-1 whitespace-nowrap"
              style={{ left: `${placeIn(range, tick)}%` }}
            >
              {offset(tick - whole.from)}
            </span>
          ))}
        </div>
        <span className="text-right text-faint">time</span>
        <span className="hidden text-right text-faint @md:block">cost · tokens</span>
      </div>
      <div className="relative min-h-0 grow overflow-y-auto">
        {spans.length > mostRows && <p className="px-4 py-1 text-faint">The {spans.length - mostRows} rows before these are left out.</p>}
        <ol aria-label="Waterfall">
          {rows.map(span => (
            <SpanRow key={span.key} {...{ span, range, chosenKey, onChoose }} now={span.to === null || span.child ? now : 0} shift={0} />
          ))}
        </ol>
      </div>
      {at !== null && (
        <div className={`${columns} pointer-events-none absolute inset-0 px-4`} aria-hidden="true">
          <span />
          <div className="relative h-full">
            {dragFrom !== null && (
              <div
                className="absolute inset-y-0 bg-accent/15"
                style={{ left: `${placeIn(range, Math.min(at, dragFrom))}%`, right: `${100 - placeIn(range, Math.max(at, dragFrom))}%` }}
              />
            )}
            <div className="absolute inset-y-0 border-l border-accent" style={{ left: `${placeIn(range, at)}%` }}>
              <span
                className={`absolute top-1 rounded bg-accent px-1 whitespace-nowrap text-accent-ink tabular-nums ${placeIn(range, at) > 80 ? 'right-0' : 'left-0'}`}
              >
                {duration(at - whole.from)}
              </span>
            </div>
          </div>
        </div>
      )}
    </section>
  )

  function press(event: PointerEvent<HTMLDivElement>): void {
    event.currentTarget.setPointerCapture(event.pointerId)
    setDragFrom(momentAt(axis.current, range, event.clientX))
  }

  function release(event: PointerEvent<HTMLDivElement>): void {
    const end = momentAt(axis.current, range, event.clientX)
    const start = dragFrom
    setDragFrom(null)
    if (start === null || Math.abs(end - start) < (range.to - range.from) / 100) return
    setPart(zoomed({ from: Math.min(start, end), to: Math.max(start, end) }, whole, 1))
  }
}

type RowProps = {
  span: Span
  range: Range
  now: number
  chosenKey: string | null
  onChoose(span: Span): void
  /** How far a row of a child is indented. */
  shift: number
}

const SpanRow = memo(({ span, range, now, chosenKey, onChoose, shift }: RowProps) => {
  const [isOpen, setOpen] = useState(false)
  const { key, kind, label, from, begins, to, outcome, tokens, cost, child } = span
  const end = to ?? Math.max(now, from)
  const used = [cost ? money(cost) : '', tokens > 0 ? count(tokens) : ''].filter(Boolean).join(' · ')
  const isChosen = chosenKey === key
  const left = placeIn(range, from)
  const middle = placeIn(range, Math.min(begins, end))
  const right = placeIn(range, end)
  return (
    <li>
      <div className={`relative px-4 ${isChosen ? 'bg-accent-well' : 'hover:bg-well'}`}>
        <button
          type="button"
          // It has the words that are in sight, in their order, on a narrow screen too.
          aria-label={`${label}, ${[duration(end - from), used].filter(Boolean).join(' ')}${tokens > 0 ? ' tokens' : ''}, ${outcomeWords[outcome]}`}
          aria-current={isChosen ? 'true' : undefined}
          onClick={() => onChoose(span)}
          className={`${columns} h-6 w-full text-left -outline-offset-2`}
        >
          <span
            title={label}
            className={`truncate ${kindLooks[kind].text}`}
            style={{ paddingLeft: (span.depth + shift) * 10 + (child ? 14 : 0) }}
          >
            {label}{' '}
          </span>
          <span className="relative h-3.5 min-w-0 overflow-hidden">
            {middle > left && (
              <span
                className={`absolute inset-y-1 rounded-l-sm opacity-40 ${kindLooks[kind].bar}`}
                style={{ left: `${left}%`, width: `${middle - left}%` }}
              />
            )}
            <span
              className={`absolute inset-y-0 min-w-0.5 rounded-sm ${outcome === 'bad' ? 'bg-bad' : kindLooks[kind].bar} ${outcome === 'open' ? 'breathing' : ''} ${outcome === 'stopped' ? 'opacity-50' : ''}`}
              style={{ left: `min(${middle}%, 100% - 2px)`, width: `${right - middle}%` }}
            />
          </span>
          <span className="truncate text-right text-soft tabular-nums">{duration(end - from)} </span>
          <span className="hidden truncate text-right text-faint tabular-nums @md:block">{used}</span>
        </button>
        {child && (
          <button
            type="button"
            aria-label={`${isOpen ? 'Close' : 'Open'} ${label}`}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
            className="absolute top-1 rounded text-soft hover:text-ink"
            style={{ left: 16 + (span.depth + shift) * 10 - 4 }}
          >
            <span className={`block transition-transform ${isOpen ? 'rotate-90' : ''}`}>
              <ChevronIcon />
            </span>
          </button>
        )}
      </div>
      {child && isOpen && <ChildRows id={child} {...{ range, now, chosenKey, onChoose }} shift={shift + span.depth + 1} />}
    </li>
  )
})

type ChildRowsProps = Omit<RowProps, 'span'> & { id: string }

function ChildRows({ id, now, ...props }: ChildRowsProps) {
  const [view] = useTasks([id])
  const spans = useMemo(() => (view ? spansOf(view) : []), [view])
  if (!view?.status) return <p className="px-4 py-1 text-faint">Loading …</p>
  return (
    <ol>
      {spans.map(span => (
        <SpanRow key={span.key} span={{ ...span, key: `${id} ${span.key}`, message: null, task: id }} now={now} {...props} />
      ))}
    </ol>
  )
}

function ZoomButton({ label, onClick, children }: { label: string; onClick: () => void; children: string }) {
  return (
    <Button kind="quiet" aria-label={label} title={label} onClick={onClick} className="min-h-6! px-2! py-0! text-xs">
      {children}
    </Button>
  )
}

function useWidth(ref: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = ref.current
    if (!element) return
    const resized = new ResizeObserver(() => setWidth(element.clientWidth))
    resized.observe(element)
    return () => resized.disconnect()
  }, [ref])
  return width
}

function isBeside(axis: HTMLElement | null, clientX: number): boolean {
  const { left = 0, right = 0 } = axis?.getBoundingClientRect() ?? {}
  return clientX < left || clientX > right
}

/** The moment below the pointer, within the range. */
function momentAt(axis: HTMLElement | null, { from, to }: Range, clientX: number): number {
  const { left = 0, width = 1 } = axis?.getBoundingClientRect() ?? {}
  return from + Math.min(1, Math.max(0, (clientX - left) / Math.max(1, width))) * (to - from)
}

/** Without the decimals that `duration` has: a tick is a round moment. */
function offset(ms: number): string {
  return ms === 0
    ? '0'
    : duration(ms)
        .replace(/\.0(?= s)/, '')
        .replace(/ 00 [sm]$/, '')
}

const kindLooks: Record<SpanKind, { text: string; bar: string }> = {
  turn: { text: 'font-medium', bar: 'bg-soft' },
  queue: { text: 'text-faint', bar: 'bg-line-strong' },
  attempt: { text: 'text-soft', bar: 'bg-soft' },
  'back-off': { text: 'text-faint', bar: 'bg-line-strong' },
  model: { text: 'text-accent', bar: 'bg-accent' },
  message: { text: 'text-soft', bar: 'bg-accent' },
  tool: { text: 'font-mono text-warn', bar: 'bg-warn' },
  step: { text: 'text-soft italic', bar: 'bg-soft' },
  wait: { text: 'text-warn', bar: 'bg-line-strong' },
  child: { text: 'text-good', bar: 'bg-good' },
}
const outcomeWords: Record<Outcome, string> = { open: 'goes on', good: 'complete', bad: 'failed', stopped: 'stopped' }
