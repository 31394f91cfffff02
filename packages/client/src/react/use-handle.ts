/**
 * The task handle of a component: a given one, one by id, or one that is created for it, once.
 *
 * Bodies are compared by value, so a body may be written inline, and the token function may change with each render. React may run an effect
 * twice in a row (StrictMode): the first run creates the task, the second reuses it.
 */
import type { CreateTaskInput } from '@rivulet/contract/tasks'
import type { RivuletError } from '@rivulet/protocol'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { HandleOptions, RivuletClient } from '../client.ts'
import type { TaskTokenSource } from '../http/credentials.ts'
import { toRivuletError } from '../http/rejection.ts'
import type { TaskHandle } from '../task/task-handle.ts'

export type TaskSource = string | CreateTaskInput | TaskHandle | null

type Creation = { client: RivuletClient; body: string; task: Promise<TaskHandle> }
type Created = { creation: Creation; task: TaskHandle | null; error: RivuletError | null }

export function useHandle(
  client: RivuletClient,
  source: TaskSource,
  token: TaskTokenSource | undefined,
): { task: TaskHandle | null; error: RivuletError | null } {
  const given = isHandle(source) ? source : null
  const id = typeof source === 'string' ? source : null
  const body = source !== null && typeof source === 'object' && !isHandle(source) ? JSON.stringify(source) : null
  const options = useHandleOptions(token)
  const byId = useMemo(() => (id === null ? null : client.tasks.get(id, options)), [client, id, options])
  const creation = useRef<Creation | null>(null)
  const [created, setCreated] = useState<Created | null>(null)

  useEffect(() => {
    if (body === null) {
      creation.current = null
      return
    }
    const known = creation.current
    const isKnown = known?.client === client && known.body === body
    const own = isKnown ? known : { client, body, task: client.tasks.create(JSON.parse(body), options) }
    creation.current = own
    let isHere = true
    own.task.then(
      task => {
        if (isHere) setCreated({ creation: own, task, error: null })
      },
      (error: unknown) => {
        if (isHere) setCreated({ creation: own, task: null, error: toRivuletError(error) })
      },
    )
    return () => {
      isHere = false
    }
  }, [client, body, options])

  if (given ?? byId) return { task: given ?? byId, error: null }
  const isOurs = created !== null && created.creation.client === client && created.creation.body === body
  return isOurs ? created : { task: null, error: null }
}

/** The same function for as long as there is a token; it returns the latest token. */
function useHandleOptions(token: TaskTokenSource | undefined): HandleOptions {
  const latest = useRef<TaskTokenSource>(token ?? '')
  useEffect(() => {
    if (token !== undefined) latest.current = token
  }, [token])
  const hasToken = token !== undefined
  return useMemo(() => (hasToken ? { token: task => tokenOf(latest.current, task) } : {}), [hasToken])
}

function tokenOf(source: TaskTokenSource, task: string): string | Promise<string> {
  return typeof source === 'string' ? source : source(task)
}

function isHandle(source: TaskSource): source is TaskHandle {
  return typeof source === 'object' && source !== null && 'view' in source
}
