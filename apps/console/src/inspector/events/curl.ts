/** The request that shows the same in a terminal. */
export function curlOf({ origin, id, after, hasKey }: { origin: string; id: string; after: string | null; hasKey: boolean }): string {
  const address = `${origin}/v1/tasks/${encodeURIComponent(id)}/events${after === null ? '?from=start' : `?after=${after}`}`
  return `curl -N '${address}'${hasKey ? ` -H "authorization: Bearer $RIVULET_KEY"` : ''}`
}
