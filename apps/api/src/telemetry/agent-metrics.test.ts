import { expect, test } from 'vitest'
import { metricsOfAgents } from './agent-metrics.ts'

test('the series of other agents and of versions are left out, and nothing else', () => {
  const shown = [
    '# HELP rivulet_turns_queued Turns that wait for a worker',
    'rivulet_turns_queued{agent="own"} 1',
    'rivulet_tokens_total{agent="own",model="m"} 7',
    'rivulet_tokens_total{model="m",agent="own"} 7',
    'rivulet_http_requests_total{method="GET",route="/v1/agents/:agent",status="200"} 3',
    'nodejs_version_info{version="v20.0.0",major="20"} 1',
    'rivulet_viewers 2',
    '',
  ]
  const hidden = [
    'rivulet_turns_queued{agent="theirs"} 1',
    'rivulet_turns_queued{agent="other"} 1',
    'rivulet_turn_run_seconds_bucket{le="1",agent="theirs",status="completed"} 1',
    'rivulet_tokens_total{agent="theirs",model="agent=\\"own\\""} 7',
    'rivulet_version_workers{version="theirs"} 1',
  ]
  expect(metricsOfAgents([...hidden, ...shown].join('\n'), new Set(['own']))).toBe(shown.join('\n'))
})
