/** The dashboard of Grafana: its panels, in rows, with the queries of each. */
import { type DeclaredMetric, declaredMetrics } from './metrics.ts'

type Panel = { title: string; about: string; unit: string; width: number; isStacked: boolean; shows: { query: string; series: string }[] }

/**
 * A panel is `title | unit, columns of 24 (default 6), stacked | the question behind it`. Its queries follow, each as `how metric of $agent by labels → series`
 * or in PromQL: `how` is rate, sum, max, min or a percentile, metrics have no `rivulet_` here, and a series without a name has its labels.
 */
const table = `
# What people feel
Time to the first words | s 8 | From when a turn was queued until its agent said something. Beside it, the same from when a worker began: what lies between is the queue.
  p50 first_delta_seconds of $agent by since → p50 since {{since}}
  p95 first_delta_seconds of $agent by since → p95 since {{since}}
Lag of what is said | s 8 | From when an agent said something until it was written to its viewers, sampled. It grows when Redis, the network or an API is slow.
  p50 delta_lag_seconds → p50
  p99 delta_lag_seconds → p99
Requests, p95 | s 8 | How long requests took to be answered, by route, without streams.
  p95 http_request_seconds by route
Turns by outcome | ops 8 stacked | Turns that ended, by how.
  rate turns_finished_total of $agent by status
How long turns run, p95 | s 8 | Time from the first claim of a turn to its end, including retries, by agent.
  p95 turn_run_seconds of $agent by agent
How long turns wait, p95 | s 8 | Time from when an attempt could start until a worker claimed it, by agent.
  p95 turn_wait_seconds of $agent by agent

# Work
Turns that wait | short stacked | Turns that could run now and wait for a worker. Every API tells the same figure: the highest counts, not the sum.
  max turns_queued of $agent by agent
The oldest of them | s | Waiting time of the oldest turn that could run now. The first to look at when something is stuck.
  max oldest_queued_turn_seconds of $agent by agent
Turns that run | short | Turns that are claimed, and how many the workers could run together.
  max turns_running of $agent by agent
  sum worker_concurrency → room
  min slots_kept_free of $agent by agent → {{agent}}, kept free
Workers | short | Worker processes with a heartbeat within a lease, by agent.
  max workers of $agent by agent
Accepted and dispatched | ops | Tasks that were accepted, and jobs handed to the queue: one for each turn, and one more for each try and each repair.
  rate tasks_created_total → tasks
  rate turns_dispatched_total → jobs
Models and tools, p95 | s | How long agents waited for an answer, by model and tool.
  p95 agent_call_seconds of $agent by call, name
Calls that failed | ops | Calls of models and tools that failed.
  rate agent_call_errors_total of $agent by call, name
Attempts in a worker, p95 | s | How long attempts took, by how they ended: completed, failed, lost to another worker, or released.
  p95 attempt_seconds of $agent by end

# Viewers
Open streams | short | Tasks that streams of each API watch; streams of any kind whose socket is full.
  sum viewers by instance
  sum viewers_blocked → full
  sum turn_waits → waiting requests
Unsent bytes | bytes | What waits in the APIs for the sockets of viewers. At most 1 MiB each, by design.
  sum viewer_unsent_bytes by instance
Snapshots sent | ops | By reason: a join is normal; a gap means that a log lost something; slow is a viewer that could not keep up.
  rate snapshots_sent_total by reason
Viewers and connections cut off | ops | Viewers and other clients that read nothing for 30 s, connections beyond MAX_CONNECTIONS, and connections with too many requests at once.
  rate viewers_cut_total → viewers
  rate connections_cut_total by reason → connections: {{reason}}

# What goes wrong
Repairs | ops | Repairs by the reconciler, by kind. Some after a deploy are normal; many all the time are not.
  rate reconciler_repairs_total by kind
Deaths and retries | ops | Turns whose worker died or was blocked by them, attempts that failed and were given another try, and turns that a late worker took back.
  rate worker_deaths_total → deaths
  rate turn_retries_total → retries
  rate turns_blocking_total → blocked their worker
  rate leases_taken_back_total → taken back
Fenced writes | ops | Writes that were rejected because another worker holds the turn: a worker that was frozen, or cut off.
  rate fenced_writes_total by write
Attempts of a turn | short | Attempts that turns took, on average and for the worst of a hundred.
  sum(rate(rivulet_turn_attempts_sum[$__rate_interval])) / sum(rate(rivulet_turn_attempts_count[$__rate_interval])) → mean
  p99 turn_attempts → p99
Errors by code | ops | Rejected and failed requests, by error code: rate_limited and too_many_streams are a caller's, overloaded and dependency_unavailable are ours.
  rate http_errors_total by code
  rate limit_rejections_total by setting
Requests by status | ops stacked | Requests that were answered, by status.
  rate http_requests_total by status
Logs that lost something | ops | Logs that were reopened because Redis lost entries, entries that could not be read, and turns that worker and server folded differently.
  rate logs_reopened_total → reopened
  rate bad_log_entries_total → bad entries
  rate digest_mismatches_total → digest mismatches
Canceled turns | ops | By origin: a call, an interrupting input, or the reconciler in place of a caller that disconnected.
  rate turns_canceled_total by by

# Processes
Event loop lag, p99 | s 8 | How late timers are. Above a tenth of a second, a process does too much at once.
  max by (instance) (nodejs_eventloop_lag_p99_seconds{job=~"rivulet.*"}) → {{instance}}
CPU | percentunit 8 | What each process takes of one core: near 1 it can do no more.
  rate(process_cpu_seconds_total{job=~"rivulet.*"}[$__rate_interval]) → {{instance}}
Memory | bytes 8 | What each process holds in memory (resident): it should level off.
  process_resident_memory_bytes{job=~"rivulet.*"} → {{instance}}
Connections to Postgres | short 8 | By pool and state. Requests wait when Postgres is slow or the pool is too small.
  sum postgres_connections by pool, state
Memory of Redis | percentunit 8 | The part of its maxmemory that Redis uses. New work is refused above MAX_REDIS_MEMORY_PERCENT.
  max redis_memory_ratio → used
Turns in each worker | short 8 | Turns that run in each worker process.
  sum worker_turns_running by instance
Attempts to deliver webhooks | ops 8 | Attempts per second to call the addresses of webhooks, by result.
  rate webhook_attempts_total by result
Versions of workers | short 8 | Workers by their version, and turns that have not ended by the version that began them: a version without turns is drained.
  max version_workers by version → workers {{version}}
  max version_turns by version → turns {{version}}
Open waits | short | Open waits, in all processes: what people, clients and other programs have to answer.
  max waits_open of $agent by agent, kind
The oldest open wait | s | Age of the oldest open wait.
  max oldest_open_wait_seconds of $agent by agent, kind
Parked turns | short | Turns that freed their worker to wait, per second.
  rate turns_parked_total → parked
  rate turns_joined_total by how → joined by {{how}}
  rate children_spawned_total → children spawned
Bytes of files | Bps 8 | Bytes of files that clients send (up) and read (down).
  rate file_bytes_total by direction
Transfers of files | short 8 | Uploads and downloads in progress. New ones are refused above MAX_FILE_TRANSFERS.
  sum file_transfers → in progress
Tokens | short 8 | Tokens per minute that responses of models used, of all attempts, by agent and model.
  60 * sum by (agent, model) (rate(rivulet_tokens_total[$__rate_interval])) → {{agent}} {{model}}
Audit log | ops 8 | Entries of the audit log per second, by action: changes of keys, tokens and limits, cancels, deletions and responses to waits.
  rate audit_entries_total by action
Changes held back | s 8 | How late the change feed and webhooks are because a transaction of another program is open in Postgres.
  max feed_held_seconds → held back
`

const rows = [...table.matchAll(/^# (.+)\n((?:.+\n)+)/gm)].map(([, title = '', lines = '']) => ({ title, panels: panelsIn(lines) }))

function panelsIn(lines: string): Panel[] {
  return Array.from(lines.matchAll(/^(\S.*?) \| (.*?) \| (.*)\n((?: .*\n)+)/gm), ([, title = '', how = '', about = '', queries = '']) => {
    const [unit = '', width = ''] = how.split(' ')
    const shows = queries.trim().split(/\n */).map(showOf)
    return { title, about, unit, width: Number.parseInt(width, 10) || 6, isStacked: how.endsWith('stacked'), shows }
  })
}

function showOf(text: string): Panel['shows'][number] {
  const [query = '', name] = text.split(' → ')
  const [, how, metric = '', agent, labels] = /^(\w+) (\w+)( of \$agent)?(?: by (.*))?$/.exec(query) ?? []
  const series = name ?? (labels ?? '').replaceAll(/(\w+),?/g, '{{$1}}')
  if (!how) return { query, series }
  const [, percent] = /^p(\d+)$/.exec(how) ?? []
  const selector = agent ? '{agent=~"$agent"}' : ''
  const by = [percent ? 'le' : [], labels ?? []].flat().join(', ')
  const sumOf = (text: string, sum = 'sum') => (by === '' ? `${sum}(${text})` : `${sum} by (${by}) (${text})`)
  const rate = `rate(rivulet_${metric}${percent ? '_bucket' : ''}${selector}[$__rate_interval])`
  if (percent) return { query: `histogram_quantile(${Number(percent) / 100}, ${sumOf(rate)})`, series }
  return { query: how === 'rate' ? sumOf(rate) : sumOf(`rivulet_${metric}${selector}`, how), series }
}

/** A panel for each metric that the table leaves out. */
function otherPanels(metrics: readonly DeclaredMetric[]): Panel[] {
  const queries = rows.flatMap(({ panels }) => panels).flatMap(({ shows }) => shows.map(({ query }) => query))
  const isShown = (name: string) => queries.some(query => RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(query))
  return metrics.flatMap(({ name, type, labelNames, help }) => {
    const [metric = '', how = 'max'] = [name.replace(/^rivulet_/, ''), { counter: 'rate', histogram: 'p95' }[type]]
    if (metric === name || isShown(name)) return []
    const show = showOf(`${how} ${metric}${labelNames.length > 0 ? ` by ${labelNames.join(', ')}` : ` → ${metric}`}`)
    const unit = how === 'rate' ? 'ops' : /_(seconds|bytes)$/.test(name) ? (name.endsWith('bytes') ? 'bytes' : 's') : 'short'
    return [{ title: metric.replaceAll('_', ' '), about: `${help}.`, unit, width: 6, isStacked: false, shows: [show] }]
  })
}

const height = 7
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const datasource = { type: 'prometheus', uid: '${datasource}' }
const lines = { fillOpacity: 8, lineWidth: 1, showPoints: 'never' }
const stacks = { ...lines, fillOpacity: 30, stacking: { group: 'A', mode: 'normal' } }
const options = { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } }

/** One panel a line, because people change the table above, not the file. */
export function dashboard(): string {
  const panels = placed().map(panel => `    ${JSON.stringify(panel)}`)
  return `${JSON.stringify(settings, null, 2).slice(0, -2)},\n  "panels": [\n${panels.join(',\n')}\n  ]\n}\n`
}

function placed(): object[] {
  const panels: object[] = []
  let [x, y] = [0, 0]
  const others = otherPanels(declaredMetrics())
  for (const row of others.length > 0 ? [...rows, { title: 'Other metrics', panels: others }] : rows) {
    panels.push({ id: panels.length + 1, type: 'row', title: row.title, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y }, panels: [] })
    y += 1
    for (const { width, ...panel } of row.panels) {
      if (x + width > 24) [x, y] = [0, y + height]
      panels.push({ id: panels.length + 1, ...panelOf(panel), gridPos: { h: height, w: width, x, y } })
      x += width
    }
    ;[x, y] = [0, y + height]
  }
  return panels
}

function panelOf({ title, about, unit, isStacked, shows }: Omit<Panel, 'width'>): object {
  return {
    ...{ type: 'timeseries', title, description: about, datasource, options },
    fieldConfig: { defaults: { unit, min: 0, custom: isStacked ? stacks : lines }, overrides: [] },
    targets: shows.map(({ query, series }, at) => ({ refId: String.fromCharCode(65 + at), expr: query, legendFormat: series })),
  }
}

const settings = {
  uid: 'rivulet',
  title: 'Rivulet',
  description: 'What people feel, what waits, what runs, and what goes wrong.',
  tags: ['rivulet'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: '30s',
  time: {
    from: 'now-1h',
    to: 'now',
  },
  timezone: 'browser',
  templating: {
    list: [
      {
        name: 'datasource',
        label: 'Data source',
        type: 'datasource',
        query: 'prometheus',
        current: {},
      },
      {
        name: 'agent',
        label: 'Agent',
        type: 'query',
        datasource,
        query: {
          query: 'label_values(rivulet_turns_finished_total, agent)',
          refId: 'A',
        },
        refresh: 2,
        includeAll: true,
        multi: true,
        allValue: '.*',
        current: {
          text: 'All',
          value: '$__all',
        },
      },
    ],
  },
  annotations: {
    list: [],
  },
} as const
