/** Something to wait for until it is opened. */
export type Gate = { opened: Promise<void>; open: () => void }

export function createGate(): Gate {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open }
}
