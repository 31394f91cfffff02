/** One page of the inbox, in the query cache. The count in the navigation and the page of waits share what was read. */
import type { Page, Wait, WaitKind, WaitQuery } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useFeedPace } from '../shell/feed.ts'
import { type Polled, usePolled } from '../shell/queries.ts'

/** The kinds that a person can answer. */
export const peopleKinds: readonly WaitKind[] = ['approval', 'form', 'tool']

export function useWaits(query: WaitQuery): Polled<Page<Wait>> {
  const client = useClient()
  const asked = { kind: peopleKinds, status: 'open', ...query } as const
  return usePolled(['waits', asked], signal => client.waits.list(asked, { signal }), useFeedPace())
}

/** As a text for the navigation; empty while no wait is open. */
export function useOpenCount(): string {
  const { value } = useWaits({})
  const known = value?.data.length ?? 0
  return known === 0 ? '' : `${known}${value?.nextCursor ? '+' : ''}`
}
