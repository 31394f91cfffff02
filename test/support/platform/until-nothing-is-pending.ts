import { until } from '../until.ts'
import type { Platform } from './platform.ts'

/** Every turn of the platform has ended. */
export async function untilNothingIsPending({ pg }: Platform): Promise<void> {
  await until(
    'every turn has ended',
    async () => {
      const { rows } = await pg.query("select count(*)::int from turns where status in ('queued', 'running', 'waiting')")
      return rows[0].count === 0
    },
    { intervalMs: 100 },
  )
}
