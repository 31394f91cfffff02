/** Tells which sources have changed, a little after they did: an editor's save is often several changes. */
import { watch } from 'node:fs'
import { root } from './programs.ts'

const settleMs = 200

/** Answers what stops the watching. Files are named from the repository's root. */
export function watchSources(onChange: (files: string[]) => void): () => void {
  let touched: string[] = []
  let soon: NodeJS.Timeout | undefined
  const watchers = ['apps', 'packages'].map(folder =>
    watch(`${root}${folder}`, { recursive: true }, (_, file) => {
      if (!file || !/src.*\.(ts|lua)$/.test(file) || file.includes('.test.')) return
      touched.push(`${folder}/${file}`)
      clearTimeout(soon)
      soon = setTimeout(tell, settleMs)
    }),
  )
  return () => {
    clearTimeout(soon)
    for (const watcher of watchers) watcher.close()
  }

  function tell(): void {
    const files = touched
    touched = []
    onChange(files)
  }
}
