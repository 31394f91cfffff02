/** One task: what it says as it says it, and the means to answer, to stop it and to look behind it. */
import { hasEnded, type TaskStatus } from '@rivulet/client'
import { useTask } from '@rivulet/client/react'
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useEventLog } from '../inspector/use-event-log.ts'
import { usePast } from '../inspector/use-past.ts'
import { Split } from '../shell/elements/split.tsx'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { useMedia } from '../shell/hooks/use-media.ts'
import { usePageTitle } from '../shell/hooks/use-page-title.ts'
import { setQuery, useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { titleOf, wordsOf } from '../tasks/task-title.ts'
import { useEarlier } from '../transcript/earlier/use-earlier.ts'
import { useSuperseded } from '../transcript/earlier/use-superseded.ts'
import { Transcript } from '../transcript/transcript.tsx'
import { useAnswer } from '../waits/use-answer.ts'
import { Composer } from './composer.tsx'
import { TaskActions } from './task-actions.tsx'
import { type Panel, TaskHeader } from './task-header.tsx'
import { TaskMissing } from './task-missing.tsx'
import { useStop } from './use-stop.ts'
import { useTurnActs } from './use-turn-acts.ts'

const Inspector = lazy(async () => ({ default: (await import('../inspector/inspector.tsx')).Inspector }))
const ForkDialog = lazy(async () => ({ default: (await import('./fork-dialog.tsx')).ForkDialog }))
const FactsPanel = lazy(async () => ({ default: (await import('./facts/facts-panel.tsx')).FactsPanel }))

export function TaskPage({ id }: { id: string }) {
  const { may, shared } = useSession()
  const { task, messages, messagesFrom, turns, state, waits, status, connection, error, send, cancel } = useTask(id, { follow: true })
  const [panel, setPanel] = usePanel()
  const log = useEventLog(panel === 'inspector' ? task : null)
  const past = usePast(log)
  const composer = useRef<HTMLTextAreaElement>(null)
  const [isJson, setJson] = useState(false)
  const [wanted] = useQuery('message')
  const earlier = useEarlier(task, messagesFrom)
  const superseded = useSuperseded(messages, turns)
  const isBusy = status !== null && !hasEnded(status)
  const answer = useAnswer(id)
  const stop = useStop(cancel, isBusy)
  const [forkedAfter, setForkedAfter] = useState<number | null>(null)
  const acts = useTurnActs(task, may('tasks:write'), setForkedAfter)
  const known = task?.view({ follow: true }).current.task ?? null
  // The page has the latest turns only; an edit discards the turns that it replaces.
  const first = turns[0]?.number === 1 ? turns.find(({ status }) => status !== 'discarded') : undefined
  const words = first?.input && wordsOf(first.input)
  const title = known ? titleOf({ agent: known.agent, ...(known.name && { name: known.name }), ...(words && { title: words }) }) : '…'
  usePageTitle(title)

  useKeys({
    s: () => isBusy && may('tasks:write') && stop.ask(),
    i: () => setPanel(panel === 'inspector' ? null : 'inspector'),
    a: event => {
      event.preventDefault()
      document.querySelector<HTMLElement>('[data-wait] :is(input, textarea, select, button)')?.focus()
    },
    '/': event => {
      event.preventDefault()
      composer.current?.focus()
    },
  })

  const all = useMemo(() => (earlier.messages.length > 0 ? [...earlier.messages, ...messages] : messages), [earlier.messages, messages])
  const stored = useMemo(() => ({ turns, messages: all }), [turns, all])

  if (connection === 'failed' && status === null) return <TaskMissing id={id} error={error} isShared={shared !== null} />
  return (
    <PanelSplit
      first={
        <section className="flex min-h-0 min-w-0 flex-1 flex-col">
          <TaskHeader
            {...{ title, task: known, status, turns, connection, panel, stop: isBusy && may('tasks:write') ? stop : null }}
            onPanel={setPanel}
            actions={task && known && <TaskActions handle={task} task={known} title={title} {...{ isBusy, turns, acts }} />}
          />
          <Announcement status={status} reason={error?.message} />
          <Question title={waits.at(-1)?.title} />
          <Transcript
            task={id}
            {...(past
              ? { ...past, handle: null, earlier: noEarlier, superseded: [], answer: null, acts: null }
              : { messages, turns, handle: task, earlier, superseded, answer, acts })}
            goTo={past || wanted === null || !/^\d{1,9}$/.test(wanted) ? null : Number(wanted)}
            placeholder={<p className="text-soft">{status ? 'No messages yet.' : 'Loading …'}</p>}
          />
          {past ? (
            <p role="status" className="border-t border-line bg-warn-well px-6 py-3 text-center text-[13px] text-warn">
              As of event {past.cursor}.{' '}
              <button type="button" onClick={past.leave} className="font-medium underline">
                Back to now
              </button>
            </p>
          ) : (
            may('tasks:write') && <Composer task={id} ref={composer} {...{ isBusy, send, isJson, setJson }} />
          )}
          <Suspense>
            {forkedAfter !== null && <ForkDialog {...{ id, turns }} after={forkedAfter} onClose={() => setForkedAfter(null)} />}
          </Suspense>
        </section>
      }
      second={
        <Suspense>
          {panel === 'inspector' && <Inspector {...{ handle: task, log, known: stored, id }} onClose={() => setPanel(null)} />}
          {panel === 'facts' && task && (
            <FactsPanel
              {...{ handle: task, state, version: `${status} ${turns.length} ${turns.at(-1)?.attempt}` }}
              onClose={() => setPanel(null)}
            />
          )}
        </Suspense>
      }
      panel={panel}
    />
  )
}

type PanelSplitProps = { panel: Panel | null; first: ReactNode; second: ReactNode }

/** The panel beside the transcript, or below it on a narrow screen. The transcript keeps its place in the tree, so that it keeps its scroll position. */
function PanelSplit({ panel, first, second }: PanelSplitProps) {
  const isWide = useMedia('(min-width: 64rem)')
  return (
    <Split
      name={isWide ? `${panel}.beside` : `${panel}.below`}
      direction={isWide ? 'row' : 'column'}
      label="Size of the transcript"
      normal={isWide ? (panel === 'facts' ? 66 : 56) : 50}
      first={first}
      second={panel && second}
    />
  )
}

/** Which panel is open is in the address. */
function usePanel(): [Panel | null, (panel: Panel | null) => void] {
  const [inspecting] = useQuery('inspect')
  const [facts] = useQuery('facts')
  const panel = inspecting !== null ? 'inspector' : facts !== null ? 'facts' : null
  return [panel, set]

  function set(next: Panel | null): void {
    setQuery({
      inspect: next === 'inspector' ? '1' : null,
      facts: next === 'facts' ? '1' : null,
      ...(next !== 'inspector' && { at: null, message: null }),
    })
  }
}

/** Tells a person who cannot see the page that the task has ended; not that it had ended when the page was opened. */
function Announcement({ status, reason }: { status: TaskStatus | null; reason: string | undefined }) {
  const [words, setWords] = useState('')
  const before = useRef(status)
  useEffect(() => {
    const wasBusy = before.current !== null && !hasEnded(before.current)
    before.current = status
    if (status === null) return
    if (!hasEnded(status)) setWords('')
    else if (wasBusy)
      setWords(`The task ${status === 'canceled' ? 'was canceled' : status}${status === 'failed' && reason ? `: ${reason}` : ''}`)
  }, [status, reason])
  return (
    <p role="status" className="sr-only">
      {words}
    </p>
  )
}

/** Tells a person who cannot see the page that the agent asks something. */
function Question({ title }: { title: string | undefined }) {
  return (
    <p role="status" className="sr-only">
      {title === undefined ? '' : `The agent asks: ${title}`}
    </p>
  )
}

const noEarlier = { messages: [], hasMore: false, load: () => {} }
