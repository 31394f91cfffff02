/** One task: what it says as it says it, and the means to answer, to stop it and to look behind it. */
import { hasEnded } from '@rivulet/client'
import { useTask } from '@rivulet/client/react'
import { useRef, useState } from 'react'
import { Inspector } from '../inspector/inspector.tsx'
import { useEventLog } from '../inspector/use-event-log.ts'
import { usePast } from '../inspector/use-past.ts'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { useEarlier } from '../transcript/earlier/use-earlier.ts'
import { useSuperseded } from '../transcript/earlier/use-superseded.ts'
import { Transcript } from '../transcript/transcript.tsx'
import { Composer } from './composer.tsx'
import { TaskHeader } from './task-header.tsx'
import { TaskMissing } from './task-missing.tsx'
import { useStop } from './use-stop.ts'

export function TaskPage({ id }: { id: string }) {
  const { taskToken } = useSession()
  const { task, messages, messagesFrom, turns, status, connection, error, send, cancel } = useTask(id, { follow: true, token: taskToken })
  const [inspecting, setInspecting] = useQuery('inspect')
  const isInspecting = inspecting !== null
  const log = useEventLog(isInspecting ? task : null)
  const past = usePast(log)
  const composer = useRef<HTMLTextAreaElement>(null)
  const [isJson, setJson] = useState(false)
  const earlier = useEarlier(task, messagesFrom)
  const superseded = useSuperseded(messages, turns)
  const isBusy = status !== null && !hasEnded(status)
  const stop = useStop(cancel, isBusy)

  useKeys({
    s: () => isBusy && stop.ask(),
    i: () => setInspecting(isInspecting ? null : '1'),
    '/': event => {
      event.preventDefault()
      composer.current?.focus()
    },
  })

  if (connection === 'failed' && status === null) return <TaskMissing id={id} error={error} />
  const stored = task?.view({ follow: true }).current.task ?? null
  return (
    <div className="flex h-full min-w-0 flex-col lg:flex-row">
      <section className={`flex min-h-0 min-w-0 flex-1 flex-col ${isInspecting ? 'max-lg:basis-1/2' : ''}`}>
        <TaskHeader
          {...{ id, task: stored, status, turns, connection, isInspecting, stop: isBusy ? stop : null }}
          onInspect={() => setInspecting(isInspecting ? null : '1')}
        />
        <Transcript
          task={id}
          {...(past ? { ...past, earlier: noEarlier, superseded: [] } : { messages, turns, earlier, superseded })}
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
          <Composer ref={composer} {...{ isBusy, send, isJson, setJson }} />
        )}
      </section>
      {isInspecting && <Inspector log={log} id={id} onClose={() => setInspecting(null)} />}
    </div>
  )
}

const noEarlier = { messages: [], hasMore: false, load: () => {} }
