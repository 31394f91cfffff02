/** A stored file in a message: its name and size, a way to save it, and a picture as a picture. It is read with the credentials of the page. */
import type { ContentOf } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useEffect, useState } from 'react'
import { DownloadIcon, FileIcon } from '../shell/elements/icons.tsx'
import { size } from '../shell/human-units.ts'
import { textOf } from '../shell/queries.ts'
import { saveBlob } from '../shell/save-blob.ts'

/** A larger picture is loaded only when a person saves it. */
const maxPreviewBytes = 4_000_000
/** Not SVG, because it may hold a program. */
const pictureTypes = /^image\/(png|jpeg|gif|webp|avif)$/

export function FileCard({ content }: { content: ContentOf<'media'> & { file: string } }) {
  const client = useClient()
  const { file, mimeType, name = 'file', size: bytes } = content
  const [error, setError] = useState<string | null>(null)
  const hasPreview = pictureTypes.test(mimeType) && bytes !== undefined && bytes <= maxPreviewBytes
  return (
    <div className="max-w-sm overflow-hidden rounded-lg border border-line bg-panel text-[13px] text-ink">
      {hasPreview && <Preview file={file} name={name} />}
      <div className="flex items-center gap-2 px-3 py-2">
        <span className="shrink-0 text-soft">
          <FileIcon />
        </span>
        <span className="min-w-0 grow">
          <span className="block truncate font-medium" title={name}>
            {name}
          </span>
          <span className="block text-xs text-soft">{[mimeType, bytes === undefined ? '' : size(bytes)].filter(Boolean).join(', ')}</span>
        </span>
        <button
          type="button"
          aria-label={`Download ${name}`}
          onClick={() => void download()}
          className="rounded-lg p-1.5 text-soft hover:bg-well hover:text-ink"
        >
          <DownloadIcon />
        </button>
      </div>
      {error && (
        <p role="alert" className="px-3 pb-2 text-bad">
          {error}
        </p>
      )}
    </div>
  )

  async function download(): Promise<void> {
    setError(null)
    try {
      saveBlob(name, await (await client.files.download(file)).blob())
    } catch (reason) {
      setError(textOf(reason))
    }
  }
}

function Preview({ file, name }: { file: string; name: string }) {
  const client = useClient()
  const [address, setAddress] = useState<string | null>(null)
  useEffect(() => {
    const leaving = new AbortController()
    let made: string | null = null
    client.files
      .download(file, { signal: leaving.signal })
      .then(found => found.blob())
      .then(blob => {
        if (leaving.signal.aborted) return
        made = URL.createObjectURL(blob)
        setAddress(made)
      })
      // The card below it says what can be done.
      .catch(() => {})
    return () => {
      leaving.abort()
      if (made) URL.revokeObjectURL(made)
    }
  }, [client, file])
  // Of a fixed height, so that the text below stays in place when the picture is there.
  return (
    <div className="grid h-48 place-items-center border-b border-line bg-well">
      {address && <img src={address} alt={name} className="max-h-48 max-w-full object-contain" />}
    </div>
  )
}
