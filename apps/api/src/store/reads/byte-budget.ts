/**
 * Byte budgets inside Postgres: decides which values of a page fit before any of them is sent.
 *
 * The size of a value is that of its JSON text, which Postgres must decompress to measure. So a statement measures values one by one, in order,
 * up to the first that does not fit: it decompresses its budget and one value more, whatever is stored.
 */

/** The bytes of one JSON value, as an expression; 0 for null. */
export function bytesOf(value: string): string {
  return `coalesce(octet_length((${value})::text), 0)`
}

type Budget = {
  /** Names the parts; the statement has a `<name>_keys`, a row with the array `keys`. */
  name: string
  /** The bytes of the value of a key. */
  bytesAt: (key: string) => string
  /** What may be spent, and what is spent already. */
  maxBytes: string
  spent?: string
}

/** Parts of a `with recursive`. The last is `<name>_fit`, a row with `count`: how many of the keys fit, from the first on. */
export function fitKeys({ name, bytesAt, maxBytes, spent = '0' }: Budget): string {
  return `
${name}_walk (place, bytes) as (
  select 0, (${spent})::bigint
  union all
  select place + 1, bytes + coalesce(${bytesAt('keys[place + 1]')}, 0) from ${name}_walk, ${name}_keys
  where place < cardinality(keys) and bytes <= ${maxBytes}
), ${name}_fit as (
  select coalesce(max(place), 0) as count from ${name}_walk where bytes <= ${maxBytes}
)`
}

/** How many rows of a page are sent: those that fit, and the first in any case, because a page without a row would never end. */
export function rowsToSend(name: string, limit: string): string {
  return `least(${limit}, greatest(1, (select count from ${name}_fit)))`
}
