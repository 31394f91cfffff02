/**
 * Whom the server takes this tab for. A key is asked for when the server wants one, and kept for as long as the tab lives.
 */
import { createClient } from '@rivulet/client'
import { RivuletProvider } from '@rivulet/client/react'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { KeyForm } from './key-form.tsx'

const place = 'rivulet.key'

type SessionValue = { hasKey: boolean }

const SessionContext = createContext<SessionValue>({ hasKey: false })

export function useSession(): SessionValue {
  return useContext(SessionContext)
}

export function Session({ children }: { children: ReactNode }) {
  const [key, setKey] = useState(() => sessionStorage.getItem(place) ?? undefined)
  const [gate, setGate] = useState<'asking' | 'open' | 'refused'>('asking')
  const client = useMemo(() => createClient({ url: location.origin, key, fetch: watchful(() => setGate('refused')) }), [key])

  useEffect(() => {
    const leaving = new AbortController()
    setGate('asking')
    // Whatever else may be wrong with the server is for the pages to show.
    const open = () => setGate(gate => (leaving.signal.aborted || gate === 'refused' ? gate : 'open'))
    client.agents.list({ signal: leaving.signal }).then(open, open)
    return () => leaving.abort()
  }, [client])

  const value = useMemo(() => ({ hasKey: key !== undefined }), [key])
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

function watchful(onRefused: () => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.status === 401) onRefused()
    return response
  }
}
