/** Copies a text, and says so for a moment. */
import { type ReactNode, useEffect, useState } from 'react'
import { CopyIcon, DoneIcon } from './icons.tsx'

type CopyButtonProps = { label: string; text: () => string; icon?: ReactNode; children?: string }

export function CopyButton({ label, text, icon = <CopyIcon />, children }: CopyButtonProps) {
  const [hasCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!hasCopied) return
    const timer = setTimeout(() => setCopied(false), 1_500)
    return () => clearTimeout(timer)
  }, [hasCopied])
  return (
    <button
      type="button"
      aria-label={hasCopied ? 'Copied' : label}
      title={label}
      onClick={() => void copy()}
      className="inline-flex items-center gap-1.5 rounded-md p-1.5 text-faint hover:bg-line hover:text-ink"
    >
      {hasCopied ? <DoneIcon /> : icon}
      {children}
    </button>
  )

  async function copy(): Promise<void> {
    try {
      await copyText(text())
      setCopied(true)
    } catch {
      // The browser denied access to the clipboard, so the button does not show "copied".
    }
  }
}

/** A page that came over plain HTTP has no clipboard, but may still copy what is selected. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  document.body.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
}
