/** Base64 for the browser and Node, and bytes that can be appended to without decoding them again. */
import { RivuletError } from '../errors.ts'

declare function atob(text: string): string
declare function btoa(bytes: string): string

/** Bytes as base64 that can be appended to: whole groups as text, and the one or two bytes that do not fill a group yet. */
export type GrowingBase64 = { groups: string; rest: string; byteLength: number }

export function growBase64(before: GrowingBase64, addition: string): GrowingBase64 {
  const bytes = before.rest + decode(addition)
  const whole = bytes.length - (bytes.length % 3)
  return {
    groups: before.groups + btoa(bytes.slice(0, whole)),
    rest: bytes.slice(whole),
    byteLength: before.byteLength + bytes.length - before.rest.length,
  }
}

export function startBase64(text: string): GrowingBase64 {
  return growBase64({ groups: '', rest: '', byteLength: 0 }, text)
}

export function toBase64(bytes: GrowingBase64): string {
  return bytes.rest === '' ? bytes.groups : bytes.groups + btoa(bytes.rest)
}

/** The canonical base64 of the same bytes. */
export function canonicalBase64(text: string): string {
  return btoa(decode(text))
}

/** How many bytes a canonical base64 text encodes. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return (text.length / 4) * 3 - padding
}

export function base64Of(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192))
  return btoa(binary)
}

function decode(text: string): string {
  try {
    return atob(text)
  } catch (cause) {
    throw new RivuletError('bad_event', 'Media bytes must be base64', { cause })
  }
}
