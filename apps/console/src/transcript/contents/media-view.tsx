/** Pictures, sound and films that came with the message. What lies elsewhere is a link: nothing is loaded that was not asked for. */
import type { ContentOf } from '@rivulet/client'
import { FileCard } from '../../files/file-card.tsx'
import { size } from '../../shell/human-units.ts'

export function MediaView({ content, isGrowing }: { content: ContentOf<'media'>; isGrowing: boolean }) {
  const { mimeType, data, url, file } = content
  if (file !== undefined) return <FileCard content={{ ...content, file }} />
  if (url !== undefined) return <MediaLink address={url} mimeType={mimeType} />
  const bytes = Math.floor(((data?.length ?? 0) * 3) / 4)
  if (isGrowing || !data)
    return (
      <p className="text-soft">
        {mimeType}, {size(bytes)} so far …
      </p>
    )
  const address = `data:${mimeType};base64,${data}`
  const [kind] = mimeType.split('/')
  if (kind === 'image')
    return <img src={address} alt={`From the agent, ${mimeType}`} className="max-h-96 max-w-full rounded-lg border border-line" />
  // biome-ignore lint/a11y/useMediaCaption: an agent sends sound without captions
  if (kind === 'audio') return <audio controls src={address} className="w-full" />
  // biome-ignore lint/a11y/useMediaCaption: an agent sends films without captions
  if (kind === 'video') return <video controls src={address} className="max-h-96 max-w-full rounded-lg" />
  return (
    <a href={address} download className="text-accent underline">
      Download {mimeType}, {size(bytes)}
    </a>
  )
}

function MediaLink({ address, mimeType }: { address: string; mimeType: string }) {
  if (!/^https?:/i.test(address))
    return (
      <p className="text-soft">
        {mimeType} at {address}
      </p>
    )
  return (
    <a href={address} target="_blank" rel="noopener noreferrer" className="text-accent underline [overflow-wrap:anywhere]">
      {mimeType} at {address}
    </a>
  )
}
