/** The client of the components below a provider. */
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from 'react'
import type { RivuletClient } from '../client.ts'

const ClientContext = createContext<RivuletClient | null>(null)

export function RivuletProvider({ client, children }: { client: RivuletClient; children?: ReactNode }): ReactElement {
  return createElement(ClientContext.Provider, { value: client }, children)
}

/** The client that was given, else that of the provider above. */
export function useClient(given?: RivuletClient): RivuletClient {
  const client = useContext(ClientContext)
  const found = given ?? client
  if (!found) throw new Error('No client: use <RivuletProvider client={…}>, or pass one')
  return found
}
