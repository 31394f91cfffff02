/**
 * For whom the server takes this tab. The page asks for a key if the server requires one, and sends it with calls and streams. A shared link has a token in
 * its fragment, which may read that task and nothing else.
 */
import { type Caller, createClient, type RivuletClient, type Scope, type TaskTokenSource } from '@rivulet/client'
import { RivuletProvider } from '@rivulet/client/react'
import { QueryClientProvider } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { pageFetch } from '../streams/page-fetch.ts'
import { KeyForm } from './key-form.tsx'
import { createKeyStore } from './key-store.ts'
import { queries } from './queries.ts'
import { type SharedLink, sharedLink } from './shared-link.ts'

const keys = createKeyStore()

type SessionValue = {
  hasKey: boolean
  /** Null while it is not known. */
  caller: Caller | null
  /** Whether the caller may; true while that is not known, because the server decides in any case. */
  may(scope: Scope): boolean
  /** For the waits of one task: its subject is the key. */
  answerToken: TaskTokenSource | undefined
  shared: SharedLink | null
  signOut(): void
}

const nothing: SessionValue = {
  hasKey: false,
  caller: null,
  may: () => true,
  answerToken: undefined,
  shared: null,
  signOut: () => {},
}
const SessionContext = createContext(nothing)

export function useSession(): SessionValue {
  return useContext(SessionContext)
}

export function Session({ children, frame }: { children: ReactNode; frame: (content: ReactNode) => ReactNode }) {
  const key = useSyncExternalStore(keys.subscribe, keys.current)
  const [shared] = useState(sharedLink)
  const [isRefused, setRefused] = useState(false)
  const [caller, setCaller] = useState<Caller | null>(null)
  const wasWrong = useRef(false)
  const client = useMemo(() => {
    // A response to a key that has been replaced says nothing about the one that is used now.
    const refuse = () => key === keys.current() && setRefused(true)
    return clientFor(key, shared, refuse)
  }, [key, shared])

  useEffect(() => {
    setRefused(false)
    if (shared) return
    const leaving = new AbortController()
    setCaller(null)
    client.whoami({ signal: leaving.signal }).then(
      found => {
        setCaller(found)
        setRefused(false)
      },
      // Whatever else may be wrong with the server is for the pages to show.
      () => {},
    )
    return () => {
      leaving.abort()
      // What another tab's user may not see is not this one's to show. Here, because the pages of the next client ask right after it.
      queries.clear()
    }
  }, [client, shared])

  const value = useMemo<SessionValue>(() => {
    if (shared) return { ...nothing, may: () => false, shared }
    const may = (scope: Scope) => !caller || caller.scopes.includes(scope) || (scope !== 'worker' && caller.scopes.includes('admin'))
    const signOut = () => {
      wasWrong.current = false
      keys.clear()
    }
    return {
      hasKey: key !== undefined,
      caller,
      may,
      answerToken: key === undefined ? undefined : id => answerTokenFor(client, id, caller),
      shared,
      signOut,
    }
  }, [client, key, caller, shared])

  if (isRefused) return <KeyForm wasWrong={wasWrong.current} onKey={use} />
  return (
    <QueryClientProvider client={queries}>
      <SessionContext value={value}>
        <RivuletProvider client={client}>{frame(children)}</RivuletProvider>
      </SessionContext>
    </QueryClientProvider>
  )

  function use(given: string): void {
    wasWrong.current = true
    setRefused(given === key)
    keys.set(given)
  }
}

function clientFor(key: string | undefined, shared: SharedLink | null, onRefused: () => void): RivuletClient {
  // Few retries: a page that is not up to date says so, and asks again at its own pace.
  const options = { url: location.origin, maxRetries: 2 }
  if (shared) return createClient({ ...options, token: shared.token, fetch: pageFetch(false) })
  return createClient({ ...options, key, fetch: watchful(key, onRefused) })
}

async function answerTokenFor(client: RivuletClient, id: string, caller: Caller | null): Promise<string> {
  return (await client.tasks.get(id).createToken({ can: ['answer'], ...(caller?.key && { subject: caller.key }) })).token
}

/** An expired token does not require the key again. */
function watchful(key: string | undefined, onRefused: () => void): typeof fetch {
  const send = pageFetch(true)
  const ours = key === undefined ? null : `Bearer ${key}`
  return async (input, init) => {
    const response = await send(input, init)
    if (response.status === 401 && new Headers(init?.headers).get('authorization') === ours) onRefused()
    return response
  }
}
