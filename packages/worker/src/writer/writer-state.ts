/**
 * The state of a turn's writer: whether the turn may still write and is still ours, where its log stands, and whether sending is paused.
 *
 *   life  silent → speaking → ended (what was taken is still sent) → stopped (it may still be ours to end) → superseded (another worker has it)
 *   log   idle → sending → idle, and from both moving → idle while the server is asked for a new epoch; a new epoch has an empty log
 *
 * A life only moves to the right. The first reason to stop is the one that every later caller gets. At most one append or move is under way.
 */
import { turnOver } from '../turn/turn-over.ts'

type WriterState = { life: Life; log: LogPlace; isPaused: boolean }

type Life = { at: 'silent' } | { at: 'speaking' } | { at: 'ended' } | Stopped

export type Stopped = { at: 'stopped' | 'superseded'; reason: unknown }

type LogPlace = { at: 'idle' | 'sending' | 'moving'; epoch: number; appended: number }

export type WriterChange =
  | { to: 'speaking' | 'ended' | 'superseded' }
  | { to: 'stopped'; reason: unknown }
  | { to: 'idle' | 'sending' | 'moving' }
  | { to: 'appended'; entries: number }
  | { to: 'epoch'; epoch: number }
  | { to: 'paused' | 'resumed' }

export function firstState(epoch: number): WriterState {
  return { life: { at: 'silent' }, log: { at: 'idle', epoch, appended: 0 }, isPaused: false }
}

/** Spelled out, because every delta passes here three times, and V8 copies slowly where a spread is followed by a field that it already has. */
export function changeState({ life, log, isPaused }: WriterState, change: WriterChange): WriterState {
  const { at, epoch, appended } = log
  switch (change.to) {
    case 'speaking':
    case 'ended':
    case 'stopped':
    case 'superseded':
      return { life: nextLife(life, change), log, isPaused }
    case 'idle':
    case 'moving':
      return { life, log: { at: change.to, epoch, appended }, isPaused }
    case 'sending':
      return { life, log: at === 'idle' ? { at: 'sending', epoch, appended } : log, isPaused }
    case 'appended':
      return { life, log: at === 'sending' ? { at, epoch, appended: appended + change.entries } : log, isPaused }
    case 'epoch':
      return { life, log: at === 'moving' ? { at, epoch: change.epoch, appended: 0 } : log, isPaused }
    case 'paused':
    case 'resumed':
      return { life, log, isPaused: change.to === 'paused' }
    default:
      return change satisfies never
  }
}

export function stoppedOf({ life }: WriterState): Stopped | null {
  return life.at === 'stopped' || life.at === 'superseded' ? life : null
}

/** Whether updates are taken. */
export function isOpen({ life }: WriterState): boolean {
  return life.at === 'silent' || life.at === 'speaking'
}

/** Whether an append or a move is under way. */
export function isBusy({ log }: WriterState): boolean {
  return log.at !== 'idle'
}

/** Whether a batch may leave now. */
export function maySend(state: WriterState): boolean {
  return !isBusy(state) && !state.isPaused && !stoppedOf(state)
}

type LifeChange = Extract<WriterChange, { to: Exclude<Life['at'], 'silent'> }>

function nextLife(life: Life, change: LifeChange): Life {
  const stopped = life.at === 'stopped' || life.at === 'superseded' ? life : null
  switch (change.to) {
    case 'speaking':
      return life.at === 'silent' ? { at: 'speaking' } : life
    case 'ended':
      return stopped ?? { at: 'ended' }
    case 'stopped':
      return stopped ?? { at: 'stopped', reason: change.reason }
    case 'superseded':
      return { at: 'superseded', reason: stopped ? stopped.reason : turnOver('another worker has it') }
    default:
      return change satisfies never
  }
}
