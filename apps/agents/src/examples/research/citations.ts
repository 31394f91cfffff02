/**
 * Converts a text with marks such as `[2]` to one with sources: marks become links, numbered in order of appearance, and the notes are listed
 * below. A mark without a note is removed, because its source could not be looked up.
 */
import type { Note } from './library.ts'

export type Source = { number: number; title: string; url: string }

/** @param offered the notes that the answer could cite; mark `[1]` is the first of them. */
export function addSources(answer: string, offered: readonly Note[]): { markdown: string; sources: Source[] } {
  const cited: Note[] = []
  const linked = answer.replace(/ ?\[(\d{1,3})\](?!\()/g, (_, mark: string) => {
    const note = offered[Number(mark) - 1]
    if (!note) return ''
    if (!cited.includes(note)) cited.push(note)
    return ` [[${cited.indexOf(note) + 1}]](${note.source})`
  })
  const sources = cited.map(({ title, source }, i) => ({ number: i + 1, title, url: source }))
  const list = sources.map(({ number, title, url }) => `${number}. [${title}](${url})`)
  return { markdown: list.length > 0 ? `${linked.trimEnd()}\n\nSources:\n\n${list.join('\n')}` : linked, sources }
}
