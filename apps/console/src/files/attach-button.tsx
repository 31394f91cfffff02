/** Chooses files by the browser's own dialog. */
import { useRef } from 'react'
import { ClipIcon } from '../shell/elements/icons.tsx'

export function AttachButton({ onFiles }: { onFiles: (files: File[]) => void }) {
  const field = useRef<HTMLInputElement>(null)
  return (
    <>
      <button
        type="button"
        aria-label="Attach files"
        title="Attach files; pasting and dropping them works, too"
        onClick={() => field.current?.click()}
        className="rounded-lg p-1.5 text-soft hover:bg-well hover:text-ink"
      >
        <ClipIcon />
      </button>
      <input
        ref={field}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={event => {
          onFiles([...(event.target.files ?? [])])
          event.target.value = ''
        }}
      />
    </>
  )
}
