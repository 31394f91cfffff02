/** A wait in the transcript: the form while it is open, then what was decided, by whom and when. */
import type { Wait } from '@rivulet/client'
import { type Ref, useEffect, useRef } from 'react'
import { JsonTree } from '../json/json-tree.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { duration } from '../shell/human-units.ts'
import type { Answer } from './use-answer.ts'
import { peopleKinds } from './use-waits.ts'
import { WaitForm } from './wait-form.tsx'
import { kindWords, outcomeOf } from './wait-words.ts'

export function WaitRow({ wait, answer }: { wait: Wait; answer: Answer | null }) {
  const outcome = useRef<HTMLElement>(null)
  const isOurs = useRef(false)
  const isOpen = wait.status === 'open'
  // The form is gone, and with it the focus of the person who used it.
  useEffect(() => {
    if (!isOpen && isOurs.current) outcome.current?.focus()
  }, [isOpen])
  if (isOpen && peopleKinds.includes(wait.kind)) return <WaitForm wait={wait} answer={answer && answerHere} />
  return isOpen ? <OpenMark wait={wait} /> : <Outcome wait={wait} ref={outcome} />

  async function answerHere(...given: Parameters<Answer>): ReturnType<Answer> {
    // Before the response: the stream may tell of the answer first.
    isOurs.current = true
    try {
      return await (answer as Answer)(...given)
    } catch (error) {
      isOurs.current = false
      throw error
    }
  }
}

/** A wait that no person closes. */
function OpenMark({ wait: { kind, title, expiresAt } }: { wait: Wait }) {
  const now = useNow(1_000)
  const until = kind === 'timer' ? `until ${timeOf(expiresAt)}, in ${duration(Date.parse(expiresAt) - now)}` : title
  return (
    <p className="breathing text-[13px] text-soft">
      Waiting: {kindWords[kind]}, {until}
    </p>
  )
}

function Outcome({ wait, ref }: { wait: Wait; ref: Ref<HTMLElement> }) {
  const { title, answer, tool, status } = wait
  const facts = [answer?.by && `by ${answer.by}`, answer && timeOf(answer.at)].filter(Boolean).join(', ')
  const isGood = answer !== undefined && answer.action !== 'decline'
  const content = answer?.action === 'edit' || wait.kind !== 'approval' || wait.schema ? answer?.content : undefined
  return (
    <section
      ref={ref}
      tabIndex={-1}
      aria-label={`Decided: ${title}`}
      className="rounded-lg border border-line bg-panel px-3 py-2 text-[13px] -outline-offset-2"
    >
      <p>
        <span className="font-medium [overflow-wrap:anywhere]">{title}</span>{' '}
        <span className={status === 'answered' ? (isGood ? 'text-good' : 'text-bad') : 'text-soft'}>{outcomeOf(wait)}</span>
        {facts && <span className="text-soft"> {facts}</span>}
      </p>
      {answer?.comment && <p className="text-soft [overflow-wrap:anywhere]">“{answer.comment}”</p>}
      {content !== undefined && (
        <div className="mt-1 max-h-60 overflow-auto font-mono">
          <JsonTree value={content} {...(tool && { name: tool })} />
        </div>
      )}
    </section>
  )
}

function timeOf(at: string): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
}
