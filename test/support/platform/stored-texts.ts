/** Everything that Redis and Postgres store for a platform, as text by name: to search it for a value that neither may have. */
import type { Platform } from './platform.ts'

export async function storedTexts({ redis, pg, keys }: Platform): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  const prefix = keys.queuePrefix.replace(/^\{(.*):queue\}$/, '$1')
  for (const name of await redis.keys(`*${prefix}:*`)) texts.set(`Redis ${name}`, await textOfKey(name))
  const { rows: tables } = await pg.query("select tablename as name from pg_tables where schemaname = 'public'")
  for (const { name } of tables) {
    const { rows } = await pg.query(`select string_agg(row::text, ' ') as text from ${name} as row`)
    texts.set(`table ${name}`, rows[0]?.text ?? '')
  }
  return texts

  async function textOfKey(name: string): Promise<string> {
    switch (await redis.type(name)) {
      case 'string':
        return (await redis.get(name)) ?? ''
      case 'hash':
        return JSON.stringify(await redis.hgetall(name))
      case 'stream':
        return JSON.stringify(await redis.xrange(name, '-', '+'))
      case 'list':
        return JSON.stringify(await redis.lrange(name, 0, -1))
      case 'set':
        return JSON.stringify(await redis.smembers(name))
      default:
        return JSON.stringify(await redis.zrange(name, '0', '-1'))
    }
  }
}
