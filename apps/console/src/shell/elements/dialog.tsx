/** A window over the page. The browser keeps the focus inside. What is marked `data-first` has it first; afterwards, it is where it was. */
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { CloseIcon } from './icons.tsx'

export function Dialog({
  title,
  onClose,
  isWide = false,
  children,
}: {
  title: string
  onClose: () => void
  isWide?: boolean
  children: ReactNode
}) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before the element leaves the page, because a browser returns the focus only from a dialog that is in it.
  useLayoutEffect(() => {
    const dialog = element.current
    if (!dialog?.open) dialog?.showModal()
    dialog?.querySelector<HTMLElement>('[data-first]')?.focus()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={onClose}
      className={`m-auto max-h-[calc(100dvh-2rem)] ${isWide ? 'w-[min(72rem,calc(100vw-2rem))]' : 'w-[min(36rem,calc(100vw-2rem))]'} overflow-auto rounded-xl border border-line bg-panel text-left text-ink shadow-float`}
    >
      <header className="flex items-center justify-between px-5 pt-4">
        <h2 id={id} className="text-base font-semibold">
          {title}
        </h2>
        <button type="button" aria-label="Close" onClick={onClose} className="rounded-lg p-2 text-soft hover:bg-well hover:text-ink">
          <CloseIcon />
        </button>
      </header>
      <div className="px-5 pt-3 pb-5">{children}</div>
    </dialog>
  )
}
