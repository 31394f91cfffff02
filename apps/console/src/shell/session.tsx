/**
 * The credentials of this tab. The page asks for a key when the server requires one, and keeps it until the tab closes. Only single calls carry the
 * key: streams, and changes of a task, use a token for that task.
 */
import { createClient, type RivuletClient, RivuletError, type TaskTokenSource } from '@rivulet/client'
import { RivuletProvider } from '@rivulet/client/react'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { KeyForm } from './key-form.tsx'

const place = 'rivulet.key'

type SessionValue = {
  hasKey: boolean
  /** A token for the page of one task; undefined if the server requires no key. */
  taskToken: TaskTokenSource | undefined
}

const signedOut: SessionValue = { hasKey: false, taskToken: undefined }
const SessionContext = createContext(signedOut)

export function useSession(): SessionValue {
  return useContext(SessionContext)
}

export function Session({ children }: { children: ReactNode }) {
  const [key, setKey] = useState(() => sessionStorage.getItem(place) ?? undefined)
  const [gate, setGate] = useState<'asking' | 'open' | 'refused'>('asking')
  const client = useMemo(() => createClient({ url: location.origin, key, fetch: watchful(key, () => setGate('refused')) }), [key])

  useEffect(() => {
    const leaving = new AbortController()
    setGate('asking')
    // The pages show every other error.
    const open = () => setGate(gate => (leaving.signal.aborted || gate === 'refused' ? gate : 'open'))
    client.agents.list({ signal: leaving.signal }).then(open, open)
    return () => leaving.abort()
  }, [client])

  const value = useMemo(
    () => (key === undefined ? signedOut : { hasKey: true, taskToken: (id: string) => tokenFor(client, id) }),
    [client, key],
  )
  if (gate === 'refused') return <KeyForm wasWrong={key !== undefined} onKey={use} />
  if (gate === 'asking' && key === undefined) return null
  return (
    <SessionContext value={value}>
      <RivuletProvider client={client}>{children}</RivuletProvider>
    </SessionContext>
  )

  function use(given: string): void {
    sessionStorage.setItem(place, given)
    setGate('asking')
    setKey(given)
  }
}

/** A key that may only read gives a token that may only read. */
async function tokenFor(client: RivuletClient, id: string): Promise<string> {
  const task = client.tasks.get(id)
  try {
    return (await task.createToken({ can: ['read', 'send', 'cancel'] })).token
  } catch (error) {
    if (!(error instanceof RivuletError) || error.code !== 'forbidden') throw error
    return (await task.createToken({ can: 'read' })).token
  }
}

/** An expired token does not require the key again: the session requests the next token with it. */
function watchful(key: string | undefined, onRefused: () => void): typeof fetch {
  const ours = key === undefined ? null : `Bearer ${key}`
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.status === 401 && new Headers(init?.headers).get('authorization') === ours) onRefused()
    return response
  }
}
