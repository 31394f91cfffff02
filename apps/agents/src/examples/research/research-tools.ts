/** The scout's tools: finding notes and reading them. Both report progress and can run in parallel. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTool } from '@rivulet/agent'
import { z } from 'zod'
import { findNotes, notes, sentencesOf } from './library.ts'

/** @param paceMs how long a look takes: these notes are at hand, and others would not be. Default 100. */
export function createResearchTools({ paceMs = 100 }: { paceMs?: number } = {}) {
  const search = defineTool({
    name: 'search_notes',
    description: 'Finds notes about Rivulet by words, best first',
    input: z.object({ query: z.string().min(1).max(200), page: z.string().max(100).optional().describe('Only notes of this page') }),
    run: async ({ query, page }, { signal, progress }) => {
      progress(`Searching ${notes.length} notes`)
      await sleep(paceMs, undefined, { signal })
      const found = findNotes(query, { page }).map(({ id, title }) => ({ id, title }))
      progress(`: ${found.length} found`)
      return { query, found }
    },
  })

  const read = defineTool({
    name: 'read_note',
    description: 'Reads one note, by the id that search_notes gave',
    input: z.object({ id: z.string().max(64) }),
    run: async ({ id }, { signal, progress }) => {
      const note = notes.find(known => known.id === id)
      if (!note) throw new Error(`No note with the id ${id}. Search for one first.`)
      const sentences = sentencesOf(note.text)
      for (const [read] of sentences.entries()) {
        progress({ read, of: sentences.length })
        await sleep(paceMs, undefined, { signal })
      }
      return note
    },
  })

  return [search, read]
}
