/** Responds to the waits of one task. With a key, by a token whose subject is the key, because the subject is what the transcript shows as `by`. */
import type { TaskHandle } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useMemo } from 'react'
import { useSession } from '../shell/session.tsx'

export type Answer = TaskHandle['answer']

/** Null where the page may not answer. */
export function useAnswer(task: string): Answer | null {
  const client = useClient()
  const { may, answerToken } = useSession()
  const mayAnswer = may('tasks:write')
  return useMemo(() => (mayAnswer ? client.tasks.get(task, { token: answerToken }).answer : null), [client, task, mayAnswer, answerToken])
}
