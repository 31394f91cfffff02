/** What an operator can ask of this process. One registry per server, so that several can live in one test. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof createMetrics>

export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name: `rivulet_${name}_total`, help, labelNames, registers: [registry] })

  return {
    registry,
    tasks: counter('tasks_created', 'Tasks accepted'),
    turns: counter('turns_finished', 'Turns that ended, by status', ['status']),
    cancels: counter('turns_canceled', 'Turns that were canceled, by who wanted it', ['by']),
    fenced: counter('fenced_writes', 'Writes that were refused because somebody else has the turn, by what they were', ['write']),
    retries: counter('turn_retries', 'Failed attempts that were given another try'),
    deaths: counter('worker_deaths', 'Turns whose worker died'),
    dispatched: counter('turns_dispatched', 'Jobs handed to the queue'),
    repairs: counter('reconciler_repairs', 'What the reconciler had to mend, by kind', ['kind']),
    reopened: counter('logs_reopened', 'Logs that were reopened after they had lost entries'),
    snapshots: counter('snapshots_sent', 'Snapshots sent to viewers, by reason', ['reason']),
    badEntries: counter('bad_log_entries', 'Entries of logs that could not be read'),
    viewers: new Gauge({ name: 'rivulet_viewers', help: 'Open event streams', registers: [registry] }),
    digestMismatches: counter('digest_mismatches', 'Turns that worker and server folded differently'),
  }
}
