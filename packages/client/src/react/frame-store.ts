/**
 * A view at the pace of the screen: however often it changes, subscribers are notified once per animation frame, and the value stays the same
 * until then.
 */
export type Frames = { request(callback: () => void): unknown; cancel(frame: unknown): void }

export type FrameStore<State> = { subscribe(listener: () => void): () => void; current(): State }

/** Of one task, or of several. */
export type View<State> = { readonly current: State; subscribe(listener: () => void): () => void }

type Page = { requestAnimationFrame?(callback: () => void): unknown; cancelAnimationFrame?(frame: unknown): void }

/** A page that does not draw, in a server or in React Native's tests, has timers. */
const frameMs = 16

const pageFrames: Frames = {
  request: callback => (globalThis as Page).requestAnimationFrame?.(callback) ?? setTimeout(callback, frameMs),
  cancel: frame => {
    const { cancelAnimationFrame } = globalThis as Page
    if (cancelAnimationFrame) cancelAnimationFrame(frame)
    else clearTimeout(frame as ReturnType<typeof setTimeout>)
  },
}

export function createFrameStore<State>(view: View<State>, frames: Frames = pageFrames): FrameStore<State> {
  let shown = view.current
  return { subscribe, current: () => shown }

  function subscribe(listener: () => void): () => void {
    let frame: unknown = null
    const leave = view.subscribe(() => {
      frame ??= frames.request(show)
    })
    shown = view.current
    return () => {
      leave()
      if (frame !== null) frames.cancel(frame)
    }

    function show(): void {
      frame = null
      shown = view.current
      listener()
    }
  }
}
