/** JSON that can be opened and closed. What is closed is not drawn, and long lists come in parts. */
import type { Json } from '@rivulet/client'
import { memo, useState } from 'react'
import { ChevronIcon } from '../shell/elements/icons.tsx'
import { summaryOf } from './json-summary.ts'

const partSize = 100
const longText = 2_000

export const JsonTree = memo(({ value, name, depth = 0 }: { value: Json; name?: string; depth?: number }) => {
  if (typeof value !== 'object' || value === null)
    return (
      <div className="flex gap-1.5 pl-4.5">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    )
  return <Branch value={value} name={name} depth={depth} />
})

function Branch({ value, name, depth }: { value: Json[] | { [key: string]: Json }; name: string | undefined; depth: number }) {
  const [isOpen, setOpen] = useState(depth < 2)
  const [shown, setShown] = useState(partSize)
  const entries = isOpen ? Object.entries(value) : []
  const isEmpty = Object.keys(value).length === 0
  if (isEmpty)
    return (
      <div className="flex gap-1.5 pl-4.5">
        <Name name={name} />
        <span className="text-faint">{Array.isArray(value) ? '[]' : '{}'}</span>
      </div>
    )
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex max-w-full items-center gap-0.5 rounded text-left hover:bg-well"
      >
        <span className={`text-faint transition-transform ${isOpen ? 'rotate-90' : ''}`}>
          <ChevronIcon />
        </span>
        <Name name={name} />
        <span className="truncate pl-1 text-faint">{summaryOf(value, isOpen)}</span>
      </button>
      {isOpen && (
        <div className="ml-2 border-l border-line pl-2">
          {entries.slice(0, shown).map(([key, child]) => (
            <JsonTree key={key} name={key} value={child} depth={depth + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" onClick={() => setShown(shown + partSize)} className="pl-4.5 text-accent hover:underline">
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className="shrink-0 text-soft">{name}:</span>
}

function Leaf({ value }: { value: string | number | boolean | null }) {
  const [isWhole, setWhole] = useState(false)
  if (typeof value !== 'string') return <span className={value === null ? 'text-faint' : 'text-warn'}>{String(value)}</span>
  const text = isWhole || value.length <= longText ? value : value.slice(0, longText)
  return (
    <span className="min-w-0 whitespace-pre-wrap text-good [overflow-wrap:anywhere]">
      “{text}
      {text.length < value.length && (
        <button type="button" onClick={() => setWhole(true)} className="text-accent hover:underline">
          … {value.length - text.length} more characters
        </button>
      )}
      ”
    </span>
  )
}
