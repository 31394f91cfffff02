/** The result of an MCP tool as what a model reads: its structured content, else its texts. Images and audio are named, not shown. */
import type { Json, JsonObject } from '@rivulet/protocol'

export function contentOf(result: JsonObject): Json {
  return result.structuredContent ?? textOf(result)
}

export function textOf({ content }: JsonObject): string {
  return (Array.isArray(content) ? content : []).map(blockText).join('\n')
}

function blockText(block: Json): string {
  if (typeof block !== 'object' || block === null || Array.isArray(block)) return ''
  const { type, text, mimeType, uri, resource } = block
  if (type === 'text') return typeof text === 'string' ? text : ''
  if (type === 'resource_link') return String(uri)
  if (type === 'resource' && typeof resource === 'object' && resource !== null && !Array.isArray(resource))
    return typeof resource.text === 'string' ? resource.text : `[${String(resource.mimeType ?? 'resource')} ${String(resource.uri)}]`
  return `[${String(mimeType ?? type)}]`
}
