/** A place at which an agent waits until its test lets it go on, so that no test depends on how long a step takes. */
export type Gate = { opened: Promise<void>; open: () => void }

export function createGate(): Gate {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open }
}
