/** A task's log while the inspector is open, updated once per screen frame. */
import type { TaskEvent, TaskHandle } from '@rivulet/client'
import { useEffect, useState } from 'react'
import { appendEvents, type EventLog, emptyLog } from './event-log.ts'

export function useEventLog(task: TaskHandle | null): EventLog {
  const [log, setLog] = useState(emptyLog)
  useEffect(() => {
    if (!task) return
    const leaving = new AbortController()
    let arrived: TaskEvent[] = []
    let frame = 0
    setLog(emptyLog)
    void read(task).catch(() => {})
    return () => {
      leaving.abort()
      cancelAnimationFrame(frame)
    }

    async function read(task: TaskHandle): Promise<void> {
      for await (const event of task.events({ from: 'start', follow: true, signal: leaving.signal })) {
        arrived.push(event)
        frame ||= requestAnimationFrame(show)
      }
    }

    function show(): void {
      const events = arrived
      arrived = []
      frame = 0
      setLog(log => appendEvents(log, events))
    }
  }, [task])
  return log
}
