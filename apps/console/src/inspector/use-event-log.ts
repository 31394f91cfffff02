/** A task's log while the inspector is open. It is updated ten times a second, because a list of events is not read faster, and each frame belongs to the words. */
import type { TaskEvent, TaskHandle } from '@rivulet/client'
import { useEffect, useState } from 'react'
import { appendEvents, type EventLog, emptyLog } from './event-log.ts'

const everyMs = 100

export function useEventLog(task: TaskHandle | null): EventLog {
  const [log, setLog] = useState(emptyLog)
  useEffect(() => {
    if (!task) return
    const leaving = new AbortController()
    let arrived: TaskEvent[] = []
    let timer: ReturnType<typeof setTimeout> | null = null
    setLog(emptyLog)
    void read(task).catch(() => {})
    return () => {
      leaving.abort()
      if (timer) clearTimeout(timer)
    }

    async function read(task: TaskHandle): Promise<void> {
      for await (const event of task.events({ from: 'start', follow: true, signal: leaving.signal })) {
        arrived.push(event)
        timer ??= setTimeout(show, everyMs)
      }
    }

    function show(): void {
      const events = arrived
      arrived = []
      timer = null
      setLog(log => appendEvents(log, events))
    }
  }, [task])
  return log
}
