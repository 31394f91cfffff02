/**
 * A task with its children on one response, in a dialect that has words for both. The dialect asks for a child when it comes to its start; its events then
 * reach the dialect beside those of the task. A child that cannot be followed is `deleted` for the dialect, so that it does not wait for it.
 */
import { maxStreamTasks, origin, type TaskId } from '@rivulet/protocol'
import type { Tenant } from '../../store/connection/tenant.ts'
import type { Watching } from '../hub.ts'
import { encodeWireEvent } from '../sse-frame.ts'
import { type SseResponse, share } from '../sse-response.ts'
import { respondToMany } from './many-response.ts'
import { type Children, createOpener, type ManyDeps } from './watch-many.ts'

export type Tree = ReturnType<typeof createTree>

export function createTree(deps: ManyDeps, { tenant, check }: { tenant: Tenant } & Pick<Children, 'check'>) {
  let open: (child: TaskId, from: 'log' | null) => void = () => {}
  return { follow: (child: TaskId, from: 'log' | null) => open(child, from), watch }

  /** @param watchRoot starts the viewer of the task. The response ends when the dialect ends it, or with that viewer. */
  function watch(root: TaskId, response: SseResponse, watchRoot: (part: SseResponse) => Watching): Watching {
    const many = respondToMany(response, 1, { isTagged: false, children: null })
    const opener = createOpener(deps, many, response, { tenant, isFollowing: false, check, onMissing: lose })
    let count = 1
    open = (child, from) => {
      many.await()
      count += 1
      if (count > maxStreamTasks) lose(child)
      else opener.open(child, from === 'log' ? origin : null)
    }
    let sendToken: Watching['sendToken'] = () => false
    many.add(root, part => {
      const watching = watchRoot(part)
      sendToken = watching.sendToken
      return watching
    })
    return { ...many, sendToken: event => sendToken(event) }

    function lose(child: TaskId): void {
      // Later, because the dialect may be inside the event that the child was found in.
      queueMicrotask(() => response.write(share([encodeWireEvent(origin, { type: 'deleted', task: child })])))
      many.skip()
    }
  }
}
