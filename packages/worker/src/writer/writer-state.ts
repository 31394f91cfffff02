/**
 * Whether a turn may still write, and whether it is still ours.
 *
 *   open        updates are taken and sent
 *   ended       no update is taken; what was taken is still sent
 *   stopped     nothing is taken or sent; the turn may still be ours to end
 *   superseded  nothing is taken or sent; another worker or the server has the turn
 *
 * A writer only moves down this list. The first reason to stop is the one that every later caller gets.
 */
import { turnOver } from '../turn/turn-over.ts'

export type WriterState = { at: 'open' } | { at: 'ended' } | Stopped

export type Stopped = { at: 'stopped' | 'superseded'; reason: unknown }

export type WriterChange = { to: 'ended' } | { to: 'stopped'; reason: unknown } | { to: 'superseded' }

export function changeState(state: WriterState, change: WriterChange): WriterState {
  const stopped = stoppedOf(state)
  switch (change.to) {
    case 'ended':
      return state.at === 'open' ? { at: 'ended' } : state
    case 'stopped':
      return stopped ?? { at: 'stopped', reason: change.reason }
    case 'superseded':
      return { at: 'superseded', reason: stopped ? stopped.reason : turnOver('another worker has it') }
  }
}

export function stoppedOf(state: WriterState): Stopped | null {
  return state.at === 'stopped' || state.at === 'superseded' ? state : null
}
