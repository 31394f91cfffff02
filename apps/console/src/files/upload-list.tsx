/** The files that will be sent with a message, each with how far it is. */
import { CloseIcon, FileIcon } from '../shell/elements/icons.tsx'
import { size } from '../shell/human-units.ts'
import type { Upload, Uploads } from './use-uploads.ts'

export function UploadList({ uploads: { list, remove } }: { uploads: Uploads }) {
  if (list.length === 0) return null
  return (
    <ul aria-label="Files" className="flex flex-wrap gap-2 px-3 pt-3">
      {list.map(upload => (
        <li key={upload.key} className="flex max-w-full items-center gap-2 rounded-lg border border-line bg-well py-1 pl-2 text-[13px]">
          <span className="shrink-0 text-soft">
            <FileIcon />
          </span>
          <span className="min-w-0">
            <span className="block max-w-56 truncate">{upload.name}</span>
            <Progress upload={upload} />
          </span>
          <button
            type="button"
            aria-label={`Remove ${upload.name}`}
            onClick={() => remove(upload.key)}
            className="rounded-lg p-1.5 text-soft hover:text-ink"
          >
            <CloseIcon />
          </button>
        </li>
      ))}
    </ul>
  )
}

function Progress({ upload }: { upload: Upload }) {
  if (upload.state === 'failed') return <span className="block text-xs text-bad">{upload.error}</span>
  if (upload.state === 'stored') return <span className="block text-xs text-soft">{size(upload.size)}</span>
  return (
    <progress
      aria-label={`${upload.name} is being uploaded`}
      value={upload.sent}
      max={Math.max(1, upload.size)}
      className="block h-1.5 w-32 accent-accent"
    />
  )
}
