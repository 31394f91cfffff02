/** Asks for the key that the server wants. */
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Button } from './elements/button.tsx'
import { Logo } from './elements/logo.tsx'

export function KeyForm({ wasWrong, onKey }: { wasWrong: boolean; onKey: (key: string) => void }) {
  const [key, setKey] = useState('')
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  return (
    <main className="grid min-h-full place-items-center p-6">
      <form onSubmit={submit} className="w-full max-w-sm rounded-xl border border-line bg-panel p-6 shadow-float">
        <Logo />
        <h1 className="mt-5 text-base font-semibold">Sign in</h1>
        <label htmlFor="key" className="mt-1 block font-medium">
          This server wants a key
        </label>
        <p id="key-note" className="mt-1 text-soft">
          One of <code className="font-mono text-[13px]">rivulet keys create</code>, or the server’s{' '}
          <code className="font-mono text-[13px]">RIVULET_KEY</code>. The tabs of this browser share it until they are closed.
        </p>
        <input
          ref={field}
          id="key"
          type="password"
          autoComplete="off"
          aria-describedby="key-note"
          aria-invalid={wasWrong}
          value={key}
          onChange={event => setKey(event.target.value)}
          className="mt-4 w-full rounded-lg border border-line-strong bg-page px-3 py-2 font-mono"
        />
        {wasWrong && (
          <p role="alert" className="mt-2 text-bad">
            The server does not take that key.
          </p>
        )}
        <Button type="submit" kind="primary" className="mt-4 w-full" disabled={key === ''}>
          Continue
        </Button>
      </form>
    </main>
  )

  function submit(event: FormEvent): void {
    event.preventDefault()
    if (key !== '') onKey(key)
  }
}
