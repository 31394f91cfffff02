/** Two parts with a border that can be moved, by hand or by the arrow keys. Where it is is kept in this browser. */
import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from 'react'
import { useStored } from '../hooks/use-stored.ts'

type SplitProps = {
  name: string
  direction: 'row' | 'column'
  /** Of the border. */
  label: string
  /** A part that is nothing leaves all the room to the other. */
  first: ReactNode
  second: ReactNode
  /** In percent of the whole. */
  normal?: number
}

const [least, most, step] = [15, 85, 5]

export function Split({ name, direction, label, first, second, normal = 40 }: SplitProps) {
  const [stored, store] = useStored(`split.${name}`, localStorage)
  const root = useRef<HTMLDivElement>(null)
  const isRow = direction === 'row'
  const share = stored === '' ? normal : Number(stored)
  return (
    <div ref={root} className={`flex h-full min-h-0 min-w-0 grow ${isRow ? 'flex-row' : 'flex-col'}`}>
      {first && (
        <div className="flex min-h-0 min-w-0 flex-col" style={{ flex: second ? `0 0 ${share}%` : '1 1 0%' }}>
          {first}
        </div>
      )}
      {first && second && (
        <hr
          tabIndex={0}
          aria-label={label}
          aria-orientation={isRow ? 'vertical' : 'horizontal'}
          aria-valuenow={Math.round(share)}
          aria-valuemin={least}
          aria-valuemax={most}
          onKeyDown={press}
          onPointerDown={event => event.currentTarget.setPointerCapture(event.pointerId)}
          onPointerMove={drag}
          onDoubleClick={() => store('')}
          className={`relative m-0 shrink-0 touch-none border-0 bg-line hover:bg-accent focus-visible:bg-accent ${
            isRow
              ? 'w-px cursor-col-resize before:absolute before:-inset-x-1.5 before:inset-y-0'
              : 'h-px cursor-row-resize before:absolute before:inset-x-0 before:-inset-y-1.5'
          }`}
        />
      )}
      {second && <div className="flex min-h-0 min-w-0 grow basis-0 flex-col">{second}</div>}
    </div>
  )

  function drag(event: PointerEvent<HTMLDivElement>): void {
    if (!root.current || !event.currentTarget.hasPointerCapture(event.pointerId)) return
    const { left, top, width, height } = root.current.getBoundingClientRect()
    move((isRow ? (event.clientX - left) / width : (event.clientY - top) / height) * 100)
  }

  function press(event: KeyboardEvent): void {
    const by = { ArrowLeft: -step, ArrowUp: -step, ArrowRight: step, ArrowDown: step }[event.key]
    if (by === undefined) return
    event.preventDefault()
    move(share + by)
  }

  function move(next: number): void {
    store(String(Math.round(Math.min(most, Math.max(least, next)) * 10) / 10))
  }
}
