/** A button that opens a list of actions. Arrows move through it; Escape, a click elsewhere and a choice close it. */
import { type CSSProperties, type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button } from './button.tsx'

const itemPx = 34
const edgePx = 8

export type MenuItem = { name: string; icon?: ReactNode; isDanger?: boolean; choose(): void }

export function Menu({ label, children, items }: { label: string; children: ReactNode; items: readonly MenuItem[] }) {
  /** Where the list is; null while it is closed. It is placed on the screen, because a table that scrolls would cut it off. */
  const [place, setPlace] = useState<CSSProperties | null>(null)
  const isOpen = place !== null
  const id = useId()
  const root = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)

  useEffect(() => {
    if (!isOpen) return
    itemsIn(root.current)[0]?.focus({ preventScroll: true })
    const topPx = button.current?.getBoundingClientRect().top
    const leave = ({ target }: Event) => {
      if (!(target instanceof Node && root.current?.contains(target))) setPlace(null)
    }
    // The event of a scroll may come after the click that followed the scroll.
    const look = () => {
      if (button.current?.getBoundingClientRect().top !== topPx) setPlace(null)
    }
    document.addEventListener('pointerdown', leave)
    document.addEventListener('scroll', look, true)
    return () => {
      document.removeEventListener('pointerdown', leave)
      document.removeEventListener('scroll', look, true)
    }
  }, [isOpen])

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it hears the keys of the items inside
    <div ref={root} className="relative" onKeyDown={hear}>
      <Button
        ref={button}
        kind="quiet"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={event => setPlace(isOpen ? null : placeOf(event.currentTarget, items.length))}
      >
        {children}
      </Button>
      {isOpen && (
        <div
          id={id}
          role="menu"
          aria-label={label}
          style={place}
          className="fixed z-20 w-56 overflow-y-auto rounded-xl border border-line bg-panel p-1 shadow-float"
        >
          {items.map(({ name, icon, isDanger, choose }) => (
            <button
              key={name}
              type="button"
              role="menuitem"
              tabIndex={-1}
              onClick={() => {
                close()
                choose()
              }}
              className={`flex w-full items-center gap-2 rounded-lg px-3 py-1.5 text-left hover:bg-well focus:bg-well ${isDanger ? 'text-bad' : ''}`}
            >
              {icon}
              {name}
            </button>
          ))}
        </div>
      )}
    </div>
  )

  function close(): void {
    setPlace(null)
    button.current?.focus()
  }

  function hear(event: KeyboardEvent): void {
    if (!isOpen) return
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault()
      event.stopPropagation()
      close()
      return
    }
    const found = itemsIn(root.current)
    const place = found.indexOf(document.activeElement as HTMLElement)
    const target = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: found.length - 1 }[event.key]
    if (target === undefined) return
    event.preventDefault()
    found[(target + found.length) % found.length]?.focus()
  }
}

/** Below its button, or above it, or wherever all of it is in sight. */
function placeOf(button: HTMLElement, count: number): CSSProperties {
  const { top, bottom, right } = button.getBoundingClientRect()
  const height = Math.min(count * itemPx + 10, innerHeight - 2 * edgePx)
  const [below, above] = [bottom + 4, top - 4 - height]
  const lowest = innerHeight - edgePx - height
  const placed = below <= lowest ? below : above >= edgePx ? above : lowest
  return { top: placed, right: Math.max(edgePx, document.documentElement.clientWidth - right), maxHeight: innerHeight - 2 * edgePx }
}

function itemsIn(root: HTMLElement | null): HTMLElement[] {
  return [...(root?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
}
