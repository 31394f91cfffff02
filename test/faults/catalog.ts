/**
 * Every fault that we have an answer to, and the tests that hold it. Those in `test/faults/demand` run on demand, the others in every `npm test`.
 * docs/what-happens-when.md has a row for each; what has no test here says there why.
 */
export type Fault = { name: string; tests: readonly string[] }

const flow = (...names: string[]) => names.map(name => `test/flow/${name}.test.ts`)
const slow = (...names: string[]) => names.map(name => `test/slow/${name}.test.ts`)
const always = (...names: string[]) => names.map(name => `test/faults/${name}.test.ts`)
const demand = (...names: string[]) => names.map(name => `test/faults/demand/${name}.test.ts`)

export const faults: readonly Fault[] = [
  { name: 'a worker is killed in mid-stream', tests: [...flow('recover-worker'), 'test/slow/killed-workers.test.ts'] },
  { name: 'an API is killed between the commit and turn.finished', tests: [...flow('recover-api'), ...demand('failpoints')] },
  { name: 'a worker is killed after its end is stored and before its job is completed', tests: always('crash-points') },
  { name: 'a worker freezes for longer than its lease, and wakes', tests: flow('recover-worker') },
  { name: 'a frozen worker wakes after Redis was wiped', tests: flow('recover-redis') },
  { name: 'a worker runs out of memory', tests: demand('workers') },
  { name: 'a turn always kills its worker', tests: flow('retry') },
  { name: 'an agent hangs forever', tests: flow('retry', 'turns') },
  { name: 'a worker receives SIGTERM under load', tests: [...flow('stopping'), ...slow('graceful')] },
  { name: 'an API receives SIGTERM under load', tests: [...slow('stream-pressure', 'graceful'), ...flow('stopping')] },
  { name: 'an API is killed under a hundred viewers', tests: flow('stream-many') },
  { name: 'an API is killed between the commit and its response', tests: [...always('crash-points'), ...flow('dispatch')] },
  { name: 'an API is killed after sending a job, before recording it', tests: always('crash-points') },
  { name: 'a job exists before its turn is committed', tests: demand('workers') },
  { name: 'fifty requests at once under one key', tests: flow('tasks') },
  { name: 'Redis is killed and restarted', tests: flow('recover-redis') },
  { name: 'Redis loses the end of its file', tests: flow('recover-redis', 'stream-loss') },
  { name: 'Redis is wiped in mid-stream', tests: flow('recover-redis', 'stream-loss') },
  { name: 'Redis is unavailable', tests: flow('recover-redis', 'stream-loss') },
  { name: 'a reply is lost after an append', tests: [...flow('recover-redis'), ...demand('checker')] },
  { name: 'Redis does not respond', tests: [...flow('recover-redis'), ...demand('mixed')] },
  { name: 'Redis fails over to a replica that is behind', tests: demand('redis') },
  { name: 'Redis is out of memory', tests: [...flow('redis-limits'), ...demand('redis')] },
  { name: 'Redis may evict keys', tests: [...flow('redis-limits'), ...demand('redis')] },
  { name: 'Redis cannot write its file, or loads it for long', tests: demand('redis') },
  { name: 'Postgres is unavailable for many leases while turns end', tests: flow('recover-postgres') },
  { name: 'Postgres is unavailable and the worker dies too', tests: flow('recover-postgres') },
  { name: 'Postgres does not respond', tests: flow('recover-postgres') },
  { name: 'Postgres closes connections', tests: flow('recover-postgres') },
  { name: 'a commit succeeds and its reply is lost', tests: flow('recover-postgres', 'recover-api') },
  { name: 'a result that Postgres cannot store', tests: always('poison') },
  { name: 'a delta, or a turn, that is too large', tests: flow('limits') },
  { name: 'an entry in a log that is not ours', tests: flow('stream-loss') },
  { name: 'a slow viewer among fast ones', tests: slow('stream-pressure') },
  { name: 'a viewer disappears without closing its connection', tests: [] },
  { name: 'ten thousand viewers reconnect at once', tests: demand('viewers') },
  { name: 'a viewer joins at any moment', tests: [...flow('stream-retention', 'stream-many'), ...demand('checker')] },
  { name: 'clocks jump', tests: flow('recover-worker') },
  { name: 'processes start in any order', tests: flow('recover-start', 'operations') },
  { name: 'several APIs repair at once', tests: flow('recover-api') },
  { name: 'a key is revoked during a stream', tests: flow('tenants') },
  { name: 'the disk of Postgres is full', tests: demand('postgres-disk') },
  { name: 'a connection to Postgres breaks under a query', tests: flow('recover-postgres') },
  { name: 'the clock of an API or a worker is minutes off', tests: slow('clocks') },
  { name: 'a message is too long for a snapshot, and its log is gone', tests: flow('stream-retention') },
  { name: 'a turn blocks the event loop of its worker', tests: slow('blocked-worker') },
  { name: 'a worker with forty turns is killed', tests: [...slow('killed-worker'), ...demand('workers')] },
  {
    name: 'a worker is busy, or late, for longer than a lease',
    tests: [...slow('blocked-worker'), ...flow('recover-worker'), ...demand('workers')],
  },
  {
    name: 'Redis loses a log, and a viewer comes back to another API',
    tests: ['apps/api/src/stream/cursor.laws.test.ts', ...flow('stream-loss')],
  },
  { name: 'Redis restarts or is wiped between the commit of an end and its announcement', tests: ['apps/api/src/owed-ends.test.ts'] },
  { name: 'a task is deleted while it is watched', tests: flow('stream') },
  { name: 'Redis is wiped after a task has ended', tests: flow('stream-loss') },
  { name: 'a worker is killed between a model and its tools', tests: always('durable-loop') },
  { name: 'an API is killed after a wait is committed, before it is in the log', tests: demand('failpoints') },
  { name: 'a worker is killed, or stalls, while it holds a turn that waits', tests: [...demand('waits'), ...demand('failpoints')] },
  { name: 'an API is killed between the commit of a park and its response', tests: demand('failpoints') },
  { name: 'an API is killed between the commit of an answer and its announcement', tests: demand('failpoints') },
  { name: 'two people answer a wait at once', tests: [...flow('waits'), ...demand('checker', 'mixed')] },
  { name: 'Redis is wiped, the API restarts, the worker dies and the code changes while a turn waits', tests: demand('waits') },
]
