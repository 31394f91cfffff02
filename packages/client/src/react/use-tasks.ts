/** Several tasks in a component, by one connection for all components of a client. */
import { useMemo, useSyncExternalStore } from 'react'
import type { RivuletClient } from '../client.ts'
import type { ViewState } from '../task/task-view.ts'
import { useClient } from './client-context.ts'
import { createFrameStore } from './frame-store.ts'

export type UseTasksOptions = {
  /** Default: that of the provider. */
  client?: RivuletClient
  /** Stay connected when tasks have ended, to see their next turns. Default true. */
  follow?: boolean
  /** Also the children of these tasks, behind them. Default false. */
  children?: boolean
}

/** @param ids may be written in place. The states come in their order; one that is not known yet has the status null. */
export function useTasks(
  ids: readonly string[],
  { client: given, follow = true, children = false }: UseTasksOptions = {},
): readonly ViewState[] {
  const client = useClient(given)
  const key = ids.join(' ')
  const store = useMemo(
    () => createFrameStore(client.viewMany(key === '' ? [] : key.split(' '), { follow, children })),
    [client, key, follow, children],
  )
  return useSyncExternalStore(store.subscribe, store.current, store.current)
}
