/**
 * The viewers of this process, by task. Reads each task's log once, however many viewers watch it, on two connections to Redis: one that is pushed to, one
 * that asks. It follows only tasks that it has viewers for, and a while longer, for viewers that come back.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogReader, LogSubscriber, Push } from '@rivulet/broker'
import { RivuletError, type SnapshotReason, type TaskId } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import { type Tenant, taskNotFound } from '../store/connection/tenant.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type Channel, createChannel, type WaitOutcome } from './channel.ts'
import type { Feed } from './feed.ts'
import { createKeptParts } from './log-pages.ts'
import type { StoredTasks } from './snapshot.ts'
import type { SseResponse } from './sse-response.ts'
import type { Viewer, ViewerStart } from './viewer/viewer.ts'

/** A feed that has received nothing for this long asks whether it has missed something. */
const silenceMs = 15_000
/** How long a feed is kept after its last viewer. */
const idleMs = 30_000
/** One sample of the lag in this time is enough, however many events there are. */
const lagSampleMs = 10

export type Hub = ReturnType<typeof createHub>

export type HubDeps = {
  stored: StoredTasks
  log: LogReader
  subscribe: (handlers: { onPush: (push: Push) => void; onRemoved: (task: TaskId) => void; onReset: () => void }) => LogSubscriber
  metrics: Metrics
  limits: { viewerBytes: number; snapshotBytes: number; ringBytes?: number }
  onError: (error: unknown) => void
  /** Viewers of a task were sent a snapshot, all in the same tick. */
  onSnapshots: (sent: SentSnapshots) => void
}

export type SentSnapshots = { task: TaskId; turnNumber: number | null; reason: SnapshotReason; viewers: number }

export type Watching = Pick<Viewer, 'drained' | 'leave' | 'sendToken'> & { gone(): void }

export function createHub({ stored, log, subscribe, metrics, limits, onError, onSnapshots }: HubDeps) {
  const channels = new Map<string, Channel>()
  const viewers = new Set<Viewer>()
  const kept = createKeptParts()
  const onPush = (push: Push) => channels.get(push.task)?.feed.take(push)
  const subscriber = subscribe({ onPush, onRemoved: remove, onReset: checkAll })
  /** The channels that have something to send. */
  let dirty = new Set<Channel>()
  let lagSampledAt = 0
  let isClosing = false
  const clock = setInterval(tick, 1_000)
  return { open, watch, untilEnded, close, isRunning, viewerCount: () => viewers.size }

  /** Whether a turn of this tenant's task is known not to have ended: such a task cannot have been removed. */
  function isRunning(tenant: Tenant, task: TaskId): boolean {
    const channel = channels.get(task)
    const feed = channel?.tenant === tenant ? channel.feed : null
    return Boolean(feed?.isKnown() && !feed.isSettled())
  }

  /** The feed of a task, loaded and ready to be watched. It is read as the tenant of the caller, so another tenant's task is not found. */
  async function open(tenant: Tenant, task: TaskId): Promise<Feed> {
    const channel = channels.get(task) ?? add(tenant, task)
    if (channel.tenant !== tenant) throw taskNotFound()
    const { feed } = channel
    channel.touch()
    try {
      await feed.loaded
      await feed.known()
    } catch (error) {
      if (channels.get(task)?.feed === feed && channel.idleSince() !== null) drop(task)
      throw error
    }
    if (failpoint) await failpoint('feed opened')
    return feed
  }

  /** Adds a viewer at the feed's position, in one step, so that no event is missing between its first frames and the following ones. */
  function watch(feed: Feed, response: SseResponse, start: { begin: ViewerStart; isFollowing: boolean }): Watching {
    const channel = channels.get(feed.task)
    // The response had to wait for so long that the feed was dropped: its client comes back.
    if (channel?.feed !== feed) return leaveAtOnce(response)
    const viewer = channel.add(response, start)
    viewers.add(viewer)
    metrics.viewers.set(viewers.size)
    if (isClosing) viewer.leave()
    return { drained: viewer.drained, leave: viewer.leave, sendToken: viewer.sendToken, gone: () => forget(channel, viewer) }
  }

  /**
   * Resolves when the turn has ended, or when it asks for something else than `known`, the questions that the caller has, or when the signal fires (`left`).
   * Meanwhile the hub follows the feed, as for a viewer, but encodes nothing.
   */
  function untilEnded(feed: Feed, turnNumber: number, signal: AbortSignal, known: string | null = null): Promise<WaitOutcome> {
    const channel = channels.get(feed.task)
    if (channel?.feed !== feed || isClosing || signal.aborted) return Promise.resolve('left')
    return channel.untilEnded(turnNumber, signal, known)
  }

  function forget(channel: Channel, viewer: Viewer): void {
    channel.forget(viewer)
    viewers.delete(viewer)
    metrics.viewers.set(viewers.size)
  }

  function add(tenant: Tenant, task: TaskId): Channel {
    const channel = createChannel({
      tenant,
      feed: {
        ...{ task, log, kept, onError, snapshotBytes: limits.snapshotBytes, ringBytes: limits.ringBytes },
        loadBase: turnNumber => stored.base(tenant, task, turnNumber),
        loadVersion: () => stored.version(tenant, task),
        follow: () => subscriber.follow(task),
        onBadEntry: () => metrics.badEntries.inc(),
      },
      viewerBytes: limits.viewerBytes,
      onFrames: schedule,
      onSent: sampleLag,
      onSnapshot: reason => metrics.snapshots.inc({ reason }),
      onSnapshots: (feed, reason, viewers) => onSnapshots({ task, turnNumber: feed.runningTurn(), reason, viewers }),
    })
    channels.set(task, channel)
    return channel
  }

  /** Entries that are pushed in one tick leave in one write. */
  function schedule(channel: Channel): void {
    if (dirty.size === 0) queueMicrotask(flushAll)
    dirty.add(channel)
  }

  function flushAll(): void {
    const pushed = dirty
    dirty = new Set()
    for (const channel of pushed) channel.flush()
  }

  /** Clocks of workers may be ahead of ours. */
  function sampleLag(feed: Feed): void {
    const now = Date.now()
    if (now - lagSampledAt < lagSampleMs && now >= lagSampledAt) return
    lagSampledAt = now
    metrics.deltaLag.observe(Math.max(0, now - feed.lastWrittenAt()) / 1_000)
  }

  function checkAll(): void {
    for (const channel of channels.values()) check(channel)
  }

  function tick(): void {
    const now = performance.now()
    for (const [task, channel] of channels) {
      const idleSince = channel.idleSince()
      if (idleSince !== null && now - idleSince > idleMs) drop(task)
      else if (now - channel.feed.lastReceivedAt() > silenceMs) check(channel)
    }
  }

  function check({ feed }: Channel): void {
    feed.check().catch(error => {
      if (error instanceof RivuletError && error.code === 'task_not_found') remove(feed.task)
      else onError(error)
    })
  }

  function remove(task: TaskId): void {
    const channel = channels.get(task)
    if (!channel) return
    channel.remove()
    drop(task)
  }

  function drop(task: TaskId): void {
    channels.delete(task)
    subscriber.unfollow(task).catch(onError)
  }

  /** Ends every response over a little while, so that clients do not reconnect all at once. A response whose client does not read its end is cut. */
  async function close(drainMs: number): Promise<void> {
    isClosing = true
    for (const channel of channels.values()) channel.settleAll('left')
    const leaving = [...viewers]
    for (const [position, viewer] of leaving.entries()) {
      viewer.leave()
      if (position % 50 === 49) await sleep((drainMs * 50) / leaving.length)
    }
    const deadline = performance.now() + drainMs
    while (viewers.size > 0 && performance.now() < deadline) await sleep(20)
    for (const viewer of viewers) viewer.cut()
    clearInterval(clock)
  }
}

function leaveAtOnce(response: SseResponse): Watching {
  response.end()
  return { drained: () => {}, leave: () => {}, sendToken: () => false, gone: () => {} }
}
