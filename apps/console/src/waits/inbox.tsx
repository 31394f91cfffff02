/** The open questions, to be worked through: each with its form beside the list, and after an answer the next one. */
import type { Wait } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Markdown } from '../markdown/markdown.tsx'
import { Link } from '../shell/elements/link.tsx'
import { useFeedPace } from '../shell/feed.ts'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath, useQuery } from '../shell/route.ts'
import { titleOf } from '../tasks/task-title.ts'
import { useAnswer } from './use-answer.ts'
import { peopleKinds } from './use-waits.ts'
import { WaitForm } from './wait-form.tsx'
import { kindWords } from './wait-words.ts'

export function Inbox({ waits, refresh }: { waits: readonly Wait[]; refresh: () => void }) {
  const [id, setId] = useQuery('wait')
  const titles = useTaskTitles()
  const now = useNow(10_000)
  const empty = useRef<HTMLParagraphElement>(null)
  const [isMoving, setMoving] = useState(false)
  // One that closed elsewhere stays in sight, so that a person learns what became of it.
  const [latest, setLatest] = useState<Wait | null>(null)
  const found = waits.find(wait => wait.id === id)
  const chosen = found ?? (latest?.id === id ? latest : null)
  useEffect(() => {
    if (found) setLatest(found)
  }, [found])
  useKeys({ j: () => move(1), k: () => move(-1) })
  useEffect(() => {
    if (isMoving && waits.length === 0) empty.current?.focus()
  }, [isMoving, waits.length])

  if (waits.length === 0 && !chosen)
    return (
      <p ref={empty} tabIndex={-1} className="mt-4 rounded-xl border border-line bg-panel px-4 py-8 text-center text-soft outline-none">
        No turn waits for a person.
      </p>
    )
  return (
    <div className="mt-4 grid items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
      <ul aria-label="Questions" className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-panel">
        {waits.map(wait => (
          <li key={wait.id}>
            <button
              type="button"
              aria-current={wait.id === id ? 'true' : undefined}
              onClick={() => choose(wait)}
              className={`block w-full px-4 py-2.5 text-left -outline-offset-2 ${wait.id === id ? 'bg-accent-well' : 'hover:bg-well'}`}
            >
              <span className="block font-medium [overflow-wrap:anywhere]">{wait.title}</span>
              <span dir="auto" className="block truncate text-[13px] text-soft">
                {titles.get(wait.task) ?? `Task ${wait.task}`}
              </span>
              <span className="block text-xs text-soft">{aboutOf(wait, now)}</span>
            </button>
          </li>
        ))}
      </ul>
      {chosen ? (
        <Question
          key={chosen.id}
          wait={chosen}
          title={titles.get(chosen.task) ?? chosen.task}
          isOpen={found !== undefined}
          isFocused={isMoving}
          onAnswered={next}
        />
      ) : (
        <p className="px-1 py-2 text-soft max-lg:hidden">
          Choose a question, or press <kbd className="font-mono">j</kbd>.
        </p>
      )}
    </div>
  )

  function choose(wait: Wait | undefined): void {
    setMoving(true)
    setId(wait?.id ?? null)
  }

  function move(by: 1 | -1): void {
    const place = waits.findIndex(wait => wait.id === id)
    choose(waits[place < 0 ? 0 : Math.max(0, Math.min(waits.length - 1, place + by))])
  }

  function next({ id: answered }: Wait): void {
    const place = waits.findIndex(wait => wait.id === answered)
    choose(waits[place + 1] ?? waits[place - 1])
    refresh()
  }
}

type QuestionProps = { wait: Wait; title: string; isOpen: boolean; isFocused: boolean; onAnswered: (wait: Wait) => void }

function Question({ wait, title, isOpen, isFocused, onAnswered }: QuestionProps) {
  const answer = useAnswer(wait.task)
  const root = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isFocused) root.current?.querySelector<HTMLElement>('[data-first]')?.focus()
  }, [isFocused])
  return (
    <div ref={root} className="min-w-0 space-y-3">
      <p className="text-[13px]">
        <Link to={taskPath(wait.task)} className="text-accent hover:underline">
          Open the task<span className="sr-only"> of {wait.title}</span>
        </Link>{' '}
        <span dir="auto" className="text-soft [overflow-wrap:anywhere]">
          {title}
        </span>
      </p>
      <LastWords wait={wait} />
      {isOpen ? (
        <WaitForm wait={wait} answer={peopleKinds.includes(wait.kind) ? answer : null} onAnswered={onAnswered} />
      ) : (
        <p role="status" className="text-soft">
          This question is closed: another person responded, or its turn ended.
        </p>
      )}
    </div>
  )
}

/** The agent's last text before it asked. */
function LastWords({ wait: { task, turn } }: { wait: Wait }) {
  const client = useClient()
  const { value } = usePolled(['last-words', task, turn], signal => client.tasks.get(task).messages({ turn }, { signal }), 30_000)
  const last = value?.data.findLast(({ author, content }) => author === 'agent' && content.type === 'text')
  if (last?.content.type !== 'text') return null
  return (
    <section aria-label="The agent’s last words" className="max-h-48 overflow-y-auto rounded-xl border border-line bg-panel px-4 py-2">
      <Markdown text={last.content.text} />
    </section>
  )
}

/** What tasks that wait are called: questions of one agent look alike. */
function useTaskTitles(): ReadonlyMap<string, string> {
  const client = useClient()
  const { value } = usePolled(
    ['tasks', 'asking'],
    signal => client.tasks.summaries({ status: 'waiting', limit: 100 }, { signal }),
    useFeedPace(),
  )
  return useMemo(() => new Map(value?.data.map(task => [task.id, titleOf(task)])), [value])
}

function aboutOf({ agent, kind, assignee, createdAt, expiresAt }: Wait, now: number): string {
  const times = [`asked ${age(now - Date.parse(createdAt))}`, `expires in ${duration(Date.parse(expiresAt) - now)}`]
  return [agent, kindWords[kind], assignee && `for ${assignee}`, ...times].filter(Boolean).join(' · ')
}
