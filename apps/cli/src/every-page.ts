/** All items of a list that the API returns in pages. */

export async function everyPage<T>(read: (cursor: string | undefined) => Promise<{ data: T[]; nextCursor: string | null }>): Promise<T[]> {
  const items: T[] = []
  let cursor: string | undefined
  do {
    const page = await read(cursor)
    items.push(...page.data)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return items
}
