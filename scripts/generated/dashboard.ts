/** The dashboard of Grafana: its panels, in rows, with the queries of each. */

type Panel = {
  title: string
  /** The question behind the panel. */
  about: string
  unit: string
  /** Columns, of 24. Default: 6. */
  width?: number
  isStacked?: true
  /** Queries, each with the name of its series. */
  shows: readonly (readonly [query: string, series: string])[]
}

const rows: readonly { title: string; panels: readonly Panel[] }[] = [
  {
    title: 'What people feel',
    panels: [
      {
        title: 'Time to the first words',
        about:
          'From when a turn was queued until its agent said something. Beside it, the same from when a worker began: what lies between is the queue.',
        unit: 's',
        width: 8,
        shows: [
          [
            'histogram_quantile(0.5, sum by (le, since) (rate(rivulet_first_delta_seconds_bucket{agent=~"$agent"}[$__rate_interval])))',
            'p50 since {{since}}',
          ],
          [
            'histogram_quantile(0.95, sum by (le, since) (rate(rivulet_first_delta_seconds_bucket{agent=~"$agent"}[$__rate_interval])))',
            'p95 since {{since}}',
          ],
        ],
      },
      {
        title: 'Lag of what is said',
        about:
          'From when an agent said something until it was written to its viewers, sampled. It grows when Redis, the network or an API is slow.',
        unit: 's',
        width: 8,
        shows: [
          ['histogram_quantile(0.5, sum by (le) (rate(rivulet_delta_lag_seconds_bucket[$__rate_interval])))', 'p50'],
          ['histogram_quantile(0.99, sum by (le) (rate(rivulet_delta_lag_seconds_bucket[$__rate_interval])))', 'p99'],
        ],
      },
      {
        title: 'Requests, p95',
        about: 'How long requests took to be answered, by route, without streams.',
        unit: 's',
        width: 8,
        shows: [
          ['histogram_quantile(0.95, sum by (le, route) (rate(rivulet_http_request_seconds_bucket[$__rate_interval])))', '{{route}}'],
        ],
      },
      {
        title: 'Turns by outcome',
        about: 'Turns that ended, by how.',
        unit: 'ops',
        width: 8,
        isStacked: true,
        shows: [['sum by (status) (rate(rivulet_turns_finished_total{agent=~"$agent"}[$__rate_interval]))', '{{status}}']],
      },
      {
        title: 'How long turns run, p95',
        about: 'Time from the first claim of a turn to its end, including retries, by agent.',
        unit: 's',
        width: 8,
        shows: [
          [
            'histogram_quantile(0.95, sum by (le, agent) (rate(rivulet_turn_run_seconds_bucket{agent=~"$agent"}[$__rate_interval])))',
            '{{agent}}',
          ],
        ],
      },
      {
        title: 'How long turns wait, p95',
        about: 'Time from when an attempt could start until a worker claimed it, by agent.',
        unit: 's',
        width: 8,
        shows: [
          [
            'histogram_quantile(0.95, sum by (le, agent) (rate(rivulet_turn_wait_seconds_bucket{agent=~"$agent"}[$__rate_interval])))',
            '{{agent}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Work',
    panels: [
      {
        title: 'Turns that wait',
        about: 'Turns that could run now and wait for a worker. Every API tells the same figure: the highest counts, not the sum.',
        unit: 'short',
        isStacked: true,
        shows: [['max by (agent) (rivulet_turns_queued{agent=~"$agent"})', '{{agent}}']],
      },
      {
        title: 'The oldest of them',
        about: 'Waiting time of the oldest turn that could run now. The first to look at when something is stuck.',
        unit: 's',
        shows: [['max by (agent) (rivulet_oldest_queued_turn_seconds{agent=~"$agent"})', '{{agent}}']],
      },
      {
        title: 'Turns that run',
        about: 'Turns that are claimed, and how many the workers could run together.',
        unit: 'short',
        shows: [
          ['max by (agent) (rivulet_turns_running{agent=~"$agent"})', '{{agent}}'],
          ['sum(rivulet_worker_concurrency)', 'room'],
          ['min by (agent) (rivulet_slots_kept_free{agent=~"$agent"})', '{{agent}}, kept free'],
        ],
      },
      {
        title: 'Workers',
        about: 'Worker processes with a heartbeat within a lease, by agent.',
        unit: 'short',
        shows: [['max by (agent) (rivulet_workers{agent=~"$agent"})', '{{agent}}']],
      },
      {
        title: 'Accepted and dispatched',
        about: 'Tasks that were accepted, and jobs handed to the queue: one for each turn, and one more for each try and each repair.',
        unit: 'ops',
        shows: [
          ['sum(rate(rivulet_tasks_created_total[$__rate_interval]))', 'tasks'],
          ['sum(rate(rivulet_turns_dispatched_total[$__rate_interval]))', 'jobs'],
        ],
      },
      {
        title: 'Models and tools, p95',
        about: 'How long agents waited for an answer, by model and tool.',
        unit: 's',
        shows: [
          [
            'histogram_quantile(0.95, sum by (le, call, name) (rate(rivulet_agent_call_seconds_bucket{agent=~"$agent"}[$__rate_interval])))',
            '{{call}} {{name}}',
          ],
        ],
      },
      {
        title: 'Calls that failed',
        about: 'Calls of models and tools that failed.',
        unit: 'ops',
        shows: [['sum by (call, name) (rate(rivulet_agent_call_errors_total{agent=~"$agent"}[$__rate_interval]))', '{{call}} {{name}}']],
      },
      {
        title: 'Attempts in a worker, p95',
        about: 'How long attempts took, by how they ended: completed, failed, lost to another worker, or released.',
        unit: 's',
        shows: [
          [
            'histogram_quantile(0.95, sum by (le, end) (rate(rivulet_attempt_seconds_bucket{agent=~"$agent"}[$__rate_interval])))',
            '{{end}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Viewers',
    panels: [
      {
        title: 'Open streams',
        about: 'Tasks that streams of each API watch; streams of any kind whose socket is full.',
        unit: 'short',
        shows: [
          ['sum by (instance) (rivulet_viewers)', '{{instance}}'],
          ['sum(rivulet_viewers_blocked)', 'full'],
          ['sum(rivulet_turn_waits)', 'waiting requests'],
        ],
      },
      {
        title: 'Unsent bytes',
        about: 'What waits in the APIs for the sockets of viewers. At most 1 MiB each, by design.',
        unit: 'bytes',
        shows: [['sum by (instance) (rivulet_viewer_unsent_bytes)', '{{instance}}']],
      },
      {
        title: 'Snapshots sent',
        about: 'By reason: a join is normal; a gap means that a log lost something; slow is a viewer that could not keep up.',
        unit: 'ops',
        shows: [['sum by (reason) (rate(rivulet_snapshots_sent_total[$__rate_interval]))', '{{reason}}']],
      },
      {
        title: 'Viewers and connections cut off',
        about:
          'Viewers and other clients that read nothing for 30 s, connections beyond MAX_CONNECTIONS, and connections with too many requests at once.',
        unit: 'ops',
        shows: [
          ['sum(rate(rivulet_viewers_cut_total[$__rate_interval]))', 'viewers'],
          ['sum by (reason) (rate(rivulet_connections_cut_total[$__rate_interval]))', 'connections: {{reason}}'],
        ],
      },
    ],
  },
  {
    title: 'What goes wrong',
    panels: [
      {
        title: 'Repairs',
        about: 'Repairs by the reconciler, by kind. Some after a deploy are normal; many all the time are not.',
        unit: 'ops',
        shows: [['sum by (kind) (rate(rivulet_reconciler_repairs_total[$__rate_interval]))', '{{kind}}']],
      },
      {
        title: 'Deaths and retries',
        about:
          'Turns whose worker died or was blocked by them, attempts that failed and were given another try, and turns that a late worker took back.',
        unit: 'ops',
        shows: [
          ['sum(rate(rivulet_worker_deaths_total[$__rate_interval]))', 'deaths'],
          ['sum(rate(rivulet_turn_retries_total[$__rate_interval]))', 'retries'],
          ['sum(rate(rivulet_turns_blocking_total[$__rate_interval]))', 'blocked their worker'],
          ['sum(rate(rivulet_leases_taken_back_total[$__rate_interval]))', 'taken back'],
        ],
      },
      {
        title: 'Fenced writes',
        about: 'Writes that were rejected because another worker holds the turn: a worker that was frozen, or cut off.',
        unit: 'ops',
        shows: [['sum by (write) (rate(rivulet_fenced_writes_total[$__rate_interval]))', '{{write}}']],
      },
      {
        title: 'Attempts of a turn',
        about: 'Attempts that turns took, on average and for the worst of a hundred.',
        unit: 'short',
        shows: [
          ['sum(rate(rivulet_turn_attempts_sum[$__rate_interval])) / sum(rate(rivulet_turn_attempts_count[$__rate_interval]))', 'mean'],
          ['histogram_quantile(0.99, sum by (le) (rate(rivulet_turn_attempts_bucket[$__rate_interval])))', 'p99'],
        ],
      },
      {
        title: 'Errors by code',
        about:
          "Rejected and failed requests, by error code: rate_limited and too_many_streams are a caller's, overloaded and dependency_unavailable are ours.",
        unit: 'ops',
        shows: [
          ['sum by (code) (rate(rivulet_http_errors_total[$__rate_interval]))', '{{code}}'],
          ['sum by (setting) (rate(rivulet_limit_rejections_total[$__rate_interval]))', '{{setting}}'],
        ],
      },
      {
        title: 'Requests by status',
        about: 'Requests that were answered, by status.',
        unit: 'ops',
        isStacked: true,
        shows: [['sum by (status) (rate(rivulet_http_requests_total[$__rate_interval]))', '{{status}}']],
      },
      {
        title: 'Logs that lost something',
        about:
          'Logs that were reopened because Redis lost entries, entries that could not be read, and turns that worker and server folded differently.',
        unit: 'ops',
        shows: [
          ['sum(rate(rivulet_logs_reopened_total[$__rate_interval]))', 'reopened'],
          ['sum(rate(rivulet_bad_log_entries_total[$__rate_interval]))', 'bad entries'],
          ['sum(rate(rivulet_digest_mismatches_total[$__rate_interval]))', 'digest mismatches'],
        ],
      },
      {
        title: 'Canceled turns',
        about: 'By origin: a call, an interrupting input, or the reconciler in place of a caller that disconnected.',
        unit: 'ops',
        shows: [['sum by (by) (rate(rivulet_turns_canceled_total[$__rate_interval]))', '{{by}}']],
      },
    ],
  },
  {
    title: 'Processes',
    panels: [
      {
        title: 'Event loop lag, p99',
        about: 'How late timers are. Above a tenth of a second, a process does too much at once.',
        unit: 's',
        width: 8,
        shows: [['max by (instance) (nodejs_eventloop_lag_p99_seconds{job=~"rivulet.*"})', '{{instance}}']],
      },
      {
        title: 'CPU',
        about: 'What each process takes of one core: near 1 it can do no more.',
        unit: 'percentunit',
        width: 8,
        shows: [['rate(process_cpu_seconds_total{job=~"rivulet.*"}[$__rate_interval])', '{{instance}}']],
      },
      {
        title: 'Memory',
        about: 'What each process holds in memory (resident): it should level off.',
        unit: 'bytes',
        width: 8,
        shows: [['process_resident_memory_bytes{job=~"rivulet.*"}', '{{instance}}']],
      },
      {
        title: 'Connections to Postgres',
        about: 'By pool and state. Requests wait when Postgres is slow or the pool is too small.',
        unit: 'short',
        width: 8,
        shows: [['sum by (pool, state) (rivulet_postgres_connections)', '{{pool}} {{state}}']],
      },
      {
        title: 'Memory of Redis',
        about: 'The part of its maxmemory that Redis uses. New work is refused above MAX_REDIS_MEMORY_PERCENT.',
        unit: 'percentunit',
        width: 8,
        shows: [['max(rivulet_redis_memory_ratio)', 'used']],
      },
      {
        title: 'Turns in each worker',
        about: 'Turns that run in each worker process.',
        unit: 'short',
        width: 8,
        shows: [['sum by (instance) (rivulet_worker_turns_running)', '{{instance}}']],
      },
      {
        title: 'Attempts to deliver webhooks',
        about: 'Attempts per second to call the addresses of webhooks, by result.',
        unit: 'ops',
        width: 8,
        shows: [['sum by (result) (rate(rivulet_webhook_attempts_total[$__rate_interval]))', '{{result}}']],
      },
      {
        title: 'Versions of workers',
        about:
          'Workers by their version, and turns that have not ended by the version that began them: a version without turns is drained.',
        unit: 'short',
        width: 8,
        shows: [
          ['max by (version) (rivulet_version_workers)', 'workers {{version}}'],
          ['max by (version) (rivulet_version_turns)', 'turns {{version}}'],
        ],
      },
      {
        title: 'Open waits',
        about: 'Open waits, in all processes: what people, clients and other programs have to answer.',
        unit: 'short',
        shows: [['max by (agent, kind) (rivulet_waits_open{agent=~"$agent"})', '{{agent}} {{kind}}']],
      },
      {
        title: 'The oldest open wait',
        about: 'Age of the oldest open wait.',
        unit: 's',
        shows: [['max by (agent, kind) (rivulet_oldest_open_wait_seconds{agent=~"$agent"})', '{{agent}} {{kind}}']],
      },
      {
        title: 'Parked turns',
        about: 'Turns that freed their worker to wait, per second.',
        unit: 'short',
        shows: [
          ['sum(rate(rivulet_turns_parked_total[$__rate_interval]))', 'parked'],
          ['sum by (how) (rate(rivulet_turns_joined_total[$__rate_interval]))', 'joined by {{how}}'],
          ['sum(rate(rivulet_children_spawned_total[$__rate_interval]))', 'children spawned'],
        ],
      },
      {
        title: 'Bytes of files',
        about: 'Bytes of files that clients send (up) and read (down).',
        unit: 'Bps',
        width: 8,
        shows: [['sum by (direction) (rate(rivulet_file_bytes_total[$__rate_interval]))', '{{direction}}']],
      },
      {
        title: 'Transfers of files',
        about: 'Uploads and downloads in progress. New ones are refused above MAX_FILE_TRANSFERS.',
        unit: 'short',
        width: 8,
        shows: [['sum(rivulet_file_transfers)', 'in progress']],
      },
      {
        title: 'Tokens',
        about: 'Tokens per minute that responses of models used, of all attempts, by agent and model.',
        unit: 'short',
        width: 8,
        shows: [['60 * sum by (agent, model) (rate(rivulet_tokens_total[$__rate_interval]))', '{{agent}} {{model}}']],
      },
      {
        title: 'Audit log',
        about:
          'Entries of the audit log per second, by action: changes of keys, tokens and limits, cancels, deletions and responses to waits.',
        unit: 'ops',
        width: 8,
        shows: [['sum by (action) (rate(rivulet_audit_entries_total[$__rate_interval]))', '{{action}}']],
      },
      {
        title: 'Changes held back',
        about: 'How late the change feed and webhooks are because a transaction of another program is open in Postgres.',
        unit: 's',
        width: 8,
        shows: [['max(rivulet_feed_held_seconds)', 'held back']],
      },
    ],
  },
]

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
  for (const row of rows) {
    panels.push({ id: panels.length + 1, type: 'row', title: row.title, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y }, panels: [] })
    y += 1
    for (const { width = 6, ...panel } of row.panels) {
      if (x + width > 24) [x, y] = [0, y + height]
      panels.push({ id: panels.length + 1, ...panelOf(panel), gridPos: { h: height, w: width, x, y } })
      x += width
    }
    ;[x, y] = [0, y + height]
  }
  return panels
}

function panelOf({ title, about, unit, isStacked, shows }: Panel): object {
  return {
    ...{ type: 'timeseries', title, description: about, datasource, options },
    fieldConfig: { defaults: { unit, min: 0, custom: isStacked ? stacks : lines }, overrides: [] },
    targets: shows.map(([expr, legendFormat], at) => ({ refId: String.fromCharCode(65 + at), expr, legendFormat })),
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
