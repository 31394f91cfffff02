/** Asks the person at the terminal what a turn waits for: yes or no, or the fields of its form. Each wait is asked once. */
import type { Json, JsonObject, TaskHandle, Wait } from '@rivulet/client'
import { cleanLine } from '../terminal/clean-text.ts'
import { sentenceOf } from '../terminal/failure-sentence.ts'
import type { Pen } from '../terminal/pen.ts'

/** A line that the person types; null when there is no person. `history` has the earlier lines, newest first, for the arrow keys. */
export type Prompt = (question: string, signal: AbortSignal, history?: string[]) => Promise<string | null>

type PersonDeps = { task: Pick<TaskHandle, 'answer'>; prompt: Prompt; noted: Pen; url: string; signal: AbortSignal }

export function createPerson({ task, prompt, noted, url, signal }: PersonDeps) {
  const asked = new Set<string>()
  let asking: Promise<void> = Promise.resolve()
  let open: ReadonlySet<string> = new Set()
  return { look, settled: () => asking }

  /** Called with the open waits after every event. */
  function look(waits: readonly Wait[]): void {
    open = new Set(waits.map(({ id }) => id))
    for (const wait of waits) {
      if (asked.has(wait.id) || (wait.kind !== 'approval' && wait.kind !== 'form')) continue
      asked.add(wait.id)
      asking = asking.then(() => ask(wait))
    }
  }

  async function ask(wait: Wait): Promise<void> {
    while (open.has(wait.id) && !signal.aborted) {
      const answer = await answerOf(wait)
      if (!answer || signal.aborted) return
      try {
        await task.answer(wait, answer)
        return
      } catch (error) {
        note(sentenceOf(error, url))
        if (!(error instanceof Error && 'code' in error && error.code === 'validation_failed')) return
      }
    }
  }

  async function answerOf({ title, detail, tool, arguments: given, schema }: Wait): Promise<Parameters<TaskHandle['answer']>[1] | null> {
    note(cleanLine(`? ${title}`))
    if (detail) note(cleanLine(detail))
    if (tool) note(cleanLine(`${tool} ${JSON.stringify(given ?? null)}`))
    const content = schema && (await fieldsOf(schema))
    if (content === null) return null
    const line = await type(schema ? 'send it? [y/n] ' : '[y/n] ', /^(y|yes|n|no)$/i)
    if (line === null) return null
    return /^y/i.test(line) ? { action: 'accept', ...(content && { content }) } : { action: 'decline' }
  }

  async function fieldsOf(schema: JsonObject): Promise<JsonObject | null> {
    const required = (schema.required ?? []) as string[]
    const content: JsonObject = {}
    for (const [name, field] of Object.entries((schema.properties ?? {}) as Record<string, JsonObject>)) {
      const isRequired = required.includes(name)
      const line = await type(labelOf(name, field, isRequired), isRequired ? /./ : /^/)
      if (line === null) return null
      if (line !== '') content[name] = readingOf(field, line)
    }
    return content
  }

  /** Asks until the line fits. */
  async function type(question: string, fits: RegExp): Promise<string | null> {
    for (;;) {
      noted.status(null)
      const line = await prompt(question, signal)
      if (line === null || fits.test(line.trim())) return line?.trim() ?? null
    }
  }

  function note(line: string): void {
    noted.status(null)
    noted.freshLine()
    noted.write(`${noted.style('bold', line)}\n`)
  }
}

function labelOf(name: string, { title, description, enum: choices, type, items }: JsonObject, isRequired: boolean): string {
  const known = (choices ?? (items as JsonObject | undefined)?.enum) as string[] | undefined
  const hint = known ? ` (${known.join(', ')})` : type === 'boolean' ? ' (y/n)' : ''
  const about = typeof description === 'string' ? `, ${description}` : ''
  return `${cleanLine(`${typeof title === 'string' ? title : name}${about}${hint}${isRequired ? '' : ', optional'}`)}: `
}

/** What is no number stays text: the server names what is wrong. */
function readingOf({ type }: JsonObject, line: string): Json {
  if (type === 'boolean') return /^(y|yes|true)$/i.test(line)
  if (type === 'number' || type === 'integer') return Number.isFinite(Number(line)) ? Number(line) : line
  return type === 'array' ? line.split(/\s*,\s*/) : line
}
