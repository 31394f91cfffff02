/** A promise that `open` resolves. */
export type Gate = { opened: Promise<void>; open: () => void }

export function createGate(): Gate {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open }
}
