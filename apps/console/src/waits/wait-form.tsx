/**
 * What a turn asks a person, as a form drawn from the wait. The server checks the answer; until it accepts one, the form keeps what was typed, also
 * over a reload. A wait that closes elsewhere is no longer open in the next render, so its parent shows the outcome instead.
 */
import { type ErrorDetail, type Json, RivuletError, type Wait, type WaitAction } from '@rivulet/client'
import { type FormEvent, useMemo, useState } from 'react'
import { JsonTree } from '../json/json-tree.tsx'
import { Markdown } from '../markdown/markdown.tsx'
import { Button } from '../shell/elements/button.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { useStored } from '../shell/hooks/use-stored.ts'
import { duration } from '../shell/human-units.ts'
import { withoutReason } from '../shell/queries.ts'
import { canDraw, contentOf, type Draft, draftOf, editedFrom, fieldsOf, typedFrom, undrawnIn } from './form-fields.ts'
import type { Answer } from './use-answer.ts'
import { fieldLook, UndrawnNote, WaitFields } from './wait-fields.tsx'
import { kindWords } from './wait-words.ts'

/** `json` is the edited arguments, or the result of a tool; `edited` is the arguments as fields. Both are null until the person edits them. */
type Typed = { fields: Draft; comment: string; json: string | null; edited: Draft | null }

export function WaitForm({ wait, answer, onAnswered }: { wait: Wait; answer: Answer | null; onAnswered?: (wait: Wait) => void }) {
  const { schema, actions, kind, arguments: given } = wait
  const fields = useMemo(() => (schema ? fieldsOf(schema) : []), [schema])
  const [stored, store] = useStored(`wait.${wait.id}`)
  const typed = useMemo(
    () => ({ fields: schema ? draftOf(schema) : {}, comment: '', json: null, edited: null, ...typedIn(stored) }),
    [stored, schema],
  )
  const change = (part: Partial<Typed>) => store(JSON.stringify({ ...typed, ...part }))
  const [error, setError] = useState<{ message: string; details: readonly ErrorDetail[] } | null>(null)
  const [isSending, setSending] = useState(false)
  const editSchema = canDraw(wait.argumentsSchema) ? wait.argumentsSchema : null
  const isEditing = (typed.json !== null || typed.edited !== null) && kind !== 'tool'
  const isResult = kind === 'tool' && !schema
  const faults = new Map(error?.details.map(({ path, reason }) => [nameIn(path), reason]))
  const shown = isEditing && editSchema ? fieldsOf(editSchema) : fields
  const elsewhere = error?.details.filter(({ path }) => !shown.some(({ name }) => name === nameIn(path))) ?? []
  return (
    <section
      aria-label={`Question: ${wait.title}`}
      data-wait={wait.id}
      data-first
      tabIndex={-1}
      className="rounded-xl border border-warn bg-panel px-4 py-3 text-[14px] shadow-float"
    >
      <h2 className="text-[15px] font-semibold [overflow-wrap:anywhere]">{wait.title}</h2>
      <About wait={wait} />
      <form onSubmit={submit} className="mt-3 space-y-3">
        {wait.detail && <Markdown text={wait.detail} />}
        {wait.tool && !isEditing && (
          <div className="max-h-80 overflow-auto rounded-lg bg-well p-2 font-mono text-[13px]">
            <p className="pl-4.5 font-medium">{wait.tool}</p>
            {given !== undefined && <JsonTree value={given} />}
          </div>
        )}
        <WaitFields {...{ fields, faults }} draft={typed.fields} onChange={setField} />
        {answer && isEditing && editSchema && typed.edited && (
          <>
            <WaitFields
              {...{ fields: shown, faults }}
              draft={typed.edited}
              onChange={(name, value) => change({ edited: { ...typed.edited, [name]: value } })}
            />
            <UndrawnNote names={undrawnIn(editSchema, given ?? {})} />
          </>
        )}
        {answer && ((isEditing && typed.json !== null) || isResult) && (
          <label className="block">
            <span className="mb-1 block font-medium">{isResult ? 'Result, as JSON or as text' : 'Arguments, as JSON'}</span>
            <textarea
              rows={Math.min(12, (typed.json ?? '').split('\n').length + 1)}
              value={typed.json ?? ''}
              onChange={event => change({ json: event.target.value })}
              className={`${fieldLook} font-mono text-[13px]`}
            />
          </label>
        )}
        {answer && (
          <label className="block">
            <span className="sr-only">Comment</span>
            <input
              value={typed.comment}
              maxLength={2_000}
              placeholder="Comment (optional)"
              onChange={event => change({ comment: event.target.value })}
              className={`${fieldLook} placeholder:text-faint`}
            />
          </label>
        )}
        {error && (
          <p role="alert" className="text-[13px] text-bad">
            {[error.message, ...elsewhere.map(({ path, reason }) => `${path}: ${reason}`)].join('. ')}
          </p>
        )}
        {answer ? (
          <div className="flex flex-wrap items-center gap-2">
            {actions.includes('accept') && !isEditing && (
              <Button type="submit" kind="primary" disabled={isSending}>
                {schema || isResult ? 'Send' : 'Accept'}
              </Button>
            )}
            {actions.includes('edit') && isEditing && (
              <Button type="submit" kind="primary" disabled={isSending}>
                Accept with edits
              </Button>
            )}
            {actions.includes('edit') && !schema && (
              <Button onClick={() => change(isEditing ? { json: null, edited: null } : editOf(given ?? {}))}>
                {isEditing ? 'Discard edits' : 'Edit arguments'}
              </Button>
            )}
            {actions.includes('decline') && (
              <Button kind="danger" disabled={isSending} onClick={() => void send('decline')}>
                Decline
              </Button>
            )}
          </div>
        ) : (
          <p className="text-[13px] text-soft">This page may not respond.</p>
        )}
      </form>
    </section>
  )

  function editOf(value: Json): Partial<Typed> {
    return editSchema ? { edited: typedFrom(fieldsOf(editSchema), value) } : { json: JSON.stringify(value, null, 2) }
  }

  function setField(name: string, value: Draft[string]): void {
    change({ fields: { ...typed.fields, [name]: value } })
  }

  function submit(event: FormEvent): void {
    event.preventDefault()
    void send(isEditing ? 'edit' : 'accept')
  }

  async function send(action: WaitAction): Promise<void> {
    if (!answer || isSending) return
    setError(null)
    setSending(true)
    try {
      const content = action === 'decline' ? undefined : contentFor(action)
      const comment = typed.comment.trim()
      const closed = await answer(wait, { action, ...(content !== undefined && { content }), ...(comment !== '' && { comment }) })
      store('')
      onAnswered?.(closed)
    } catch (reason) {
      setError({ message: sentenceOf(reason), details: reason instanceof RivuletError ? (reason.details ?? []) : [] })
    } finally {
      setSending(false)
    }
  }

  /** Throws a sentence for malformed JSON. */
  function contentFor(action: WaitAction): Json | undefined {
    if (schema) return contentOf(fields, typed.fields)
    if (isResult) return parsedOr(typed.json ?? '', text => text)
    if (action !== 'edit') return undefined
    if (editSchema && typed.edited) return editedFrom(editSchema, given ?? {}, typed.edited)
    return parsedOr(typed.json ?? '', () => {
      throw new Error('The arguments are not valid JSON')
    })
  }
}

function About({ wait: { kind, assignee, expiresAt } }: { wait: Wait }) {
  const now = useNow(30_000)
  const parts = [kindWords[kind], assignee && `for ${assignee}`, `expires in ${duration(Date.parse(expiresAt) - now)}`]
  return <p className="text-[13px] text-soft">{parts.filter(Boolean).join(' · ')}</p>
}

/** The first response counts, so a person who comes second learns whose that was. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof RivuletError) || error.code !== 'already_answered')
    return error instanceof Error ? withoutReason(error) : String(error)
  const of = (name: string) => error.details?.find(({ path }) => path === `/answer/${name}`)?.reason
  return `Another response was first: ${of('action')}${of('by') ? ` by ${of('by')}` : ''}`
}

/** `/content/amount`: the field `amount`. */
function nameIn(path: string): string {
  return path
    .replace(/^\/content\//, '')
    .replaceAll('~1', '/')
    .replaceAll('~0', '~')
}

function parsedOr(text: string, otherwise: (text: string) => Json): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return otherwise(text)
  }
}

function typedIn(stored: string): Partial<Typed> {
  return stored === '' ? {} : (JSON.parse(stored) as Partial<Typed>)
}
