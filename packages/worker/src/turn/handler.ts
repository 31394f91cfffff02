/** Runs the handler of an agent and writes what it yields. The updates are checked as they come. */
import { RivuletError, type TurnId, type Update } from '@rivulet/protocol'
import type { AgentDefinition } from '../define-agent.ts'
import { createStreamPlaces } from '../writer/stream-places.ts'
import type { TurnWriter } from '../writer/turn-writer.ts'
import type { Turn } from './turn.ts'

/**
 * Calls the handler from a function named after its turn. V8 lists that name in the stack of everything the handler calls or awaits, where the
 * watchdog reads it (`lease-thread/watchdog.mjs`). An AsyncLocalStorage would also cover callbacks, but costs 1 µs for each awaited update on Node 20.
 */
export function runHandler(turnId: TurnId, agent: AgentDefinition, turn: Turn, writer: TurnWriter): Promise<void> {
  const named = async () => await handle(agent, turn, writer)
  return Object.defineProperty(named, 'name', { value: `turn ${turnId}` })()
}

async function handle(agent: AgentDefinition, turn: Turn, writer: TurnWriter): Promise<void> {
  const running: unknown = agent.run(turn)
  if (isAsyncIterable(running)) {
    const places = createStreamPlaces(writer)
    for await (const update of running) await places.write(update)
    return
  }
  const returned = await running
  if (returned === undefined) return
  throw new RivuletError(
    'bad_call',
    `Agent ${agent.name} returned ${typeof returned}; a handler yields or sends its output and returns nothing`,
  )
}

function isAsyncIterable(value: unknown): value is AsyncIterable<Update> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
