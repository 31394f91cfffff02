/** What a release changes in texts. Pure: text in, text out. */

/** Of package.json and package-lock.json: only our own version lines, so that no dependency that happens to have the same version changes. */
export function withVersion(text: string, version: string, current: string): string {
  const manifest = JSON.parse(text) as { version: string; packages?: Record<string, { version?: string; link?: boolean }> }
  manifest.version = version
  for (const [folder, entry] of Object.entries(manifest.packages ?? {})) {
    const isOwn = folder === '' || /^(apps|packages)\/[^/]+$/.test(folder)
    if (isOwn && entry.version === current) entry.version = version
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** The section `## Unreleased` becomes that of the version. A changelog that has the version's section stays as it is. */
export function withChangelogHeading(text: string, version: string): string {
  if (text.includes(`\n## ${version}\n`)) return text
  if (!text.includes('\n## Unreleased\n'))
    throw new Error('docs/changelog.md has neither a section for this version nor one called Unreleased')
  return text.replace('\n## Unreleased\n', `\n## ${version}\n`)
}
