/** How many files and sockets a process of this user may have open. Node takes as many as it is allowed to. */
export function openFileLimit(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { hard: number | string } } }
  const hard = userLimits?.open_files?.hard
  return typeof hard === 'number' ? hard : Number.POSITIVE_INFINITY
}
