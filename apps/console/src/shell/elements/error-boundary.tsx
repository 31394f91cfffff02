/** A page that breaks leaves the frame around it usable. It is tried again when the address changes. */
import { Component, type ReactNode } from 'react'
import { Button } from './button.tsx'

type Props = { place: string; children: ReactNode }
type State = { error: Error | null; place: string }

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, place: this.props.place }

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  static getDerivedStateFromProps({ place }: Props, state: State): Partial<State> | null {
    return place === state.place ? null : { error: null, place }
  }

  override render(): ReactNode {
    const { error } = this.state
    if (!error) return this.props.children
    return (
      <div role="alert" className="grid h-full place-items-center p-6 text-center">
        <div>
          <h1 className="text-lg font-semibold">This page broke</h1>
          <p className="mt-2 max-w-md text-soft">{error.message}</p>
          {/* Loaded anew: the server may have a newer page, and a part of this one that was not loaded is gone. */}
          <Button className="mt-4" onClick={() => location.reload()}>
            Load it again
          </Button>
        </div>
      </div>
    )
  }
}
