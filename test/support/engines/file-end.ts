/** What parts of a test want to do when it fails, and when its file ends: each registers itself once it has something to do. */
const reports = new Set<() => void>()
const endings = new Set<(hasFailed: boolean) => Promise<void>>()

/** Until it is taken back with the function that this returns. */
export function onFailure(report: () => void): () => void {
  reports.add(report)
  return () => reports.delete(report)
}

export function onFileEnd(end: (hasFailed: boolean) => Promise<void>): void {
  endings.add(end)
}

export function reportFailure(): void {
  for (const report of reports) report()
}

export async function endFile(hasFailed: boolean): Promise<void> {
  const ends = [...endings]
  endings.clear()
  for (const end of ends) await end(hasFailed)
}
