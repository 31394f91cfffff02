/** An animated PNG of the screenshots of a page. After the first one, each frame holds only the rectangle that has changed. */
import { crc32, deflateSync, inflateSync } from 'node:zlib'

export type Shot = { png: Buffer; shownMs: number }

type Image = { width: number; height: number /** Three bytes for each pixel. */; pixels: Buffer }
type Rectangle = { x: number; y: number; width: number; height: number }

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const bytesPerPixel = 3

export function animatedPng(shots: readonly Shot[]): Buffer {
  const frames: { image: Image; area: Rectangle; shownMs: number }[] = []
  for (const { png, shownMs } of shots) {
    const image = decode(png)
    const last = frames.at(-1)
    const area = last ? changedArea(last.image, image) : { x: 0, y: 0, width: image.width, height: image.height }
    if (last && !area) last.shownMs += shownMs
    else if (area) frames.push({ image, area, shownMs })
  }
  const [first] = frames
  if (!first) throw new Error('There is no screenshot to show')
  let order = 0
  const chunks = frames.flatMap(({ image, area, shownMs }, i) => {
    const timing = Buffer.alloc(6)
    timing.writeUInt16BE(Math.round(shownMs), 0)
    timing.writeUInt16BE(1_000, 2)
    const control = Buffer.concat([bigEndian(order++, area.width, area.height, area.x, area.y), timing])
    const data = encode(image, area)
    return [chunk('fcTL', control), i === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([bigEndian(order++), data]))]
  })
  const header = Buffer.concat([bigEndian(first.image.width, first.image.height), Buffer.from([8, 2, 0, 0, 0])])
  return Buffer.concat([
    ...[signature, chunk('IHDR', header), chunk('acTL', bigEndian(frames.length, 0))],
    ...[...chunks, chunk('IEND', Buffer.alloc(0))],
  ])
}

/** Eight bits a channel, with or without alpha and not interlaced, as Chromium writes it. */
function decode(png: Buffer): Image {
  const parts: Buffer[] = []
  for (let at = signature.length; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  const [width, height, channels] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3]
  const rows = inflateSync(Buffer.concat(parts))
  const pixels = Buffer.alloc(width * height * bytesPerPixel)
  const size = width * channels
  let above = Buffer.alloc(size)
  for (let y = 0; y < height; y += 1) {
    const start = y * (size + 1)
    const row = rows.subarray(start + 1, start + 1 + size)
    for (let i = 0; i < size; i += 1) {
      const [left, up, corner] = [i < channels ? 0 : (row[i - channels] ?? 0), above[i] ?? 0, i < channels ? 0 : (above[i - channels] ?? 0)]
      row[i] = (row[i] ?? 0) + predicted(rows[start] ?? 0, left, up, corner)
    }
    for (let x = 0; x < width; x += 1) row.copy(pixels, (y * width + x) * bytesPerPixel, x * channels, x * channels + bytesPerPixel)
    above = row
  }
  return { width, height, pixels }
}

/** What the filter of a row adds to a byte, from the bytes to its left, above it, and to the left of that. */
function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return (left + up) >> 1
  if (filter !== 4) return 0
  const [toLeft, toUp, toCorner] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)]
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}

function changedArea(before: Image, after: Image): Rectangle | null {
  const { width, height } = after
  const [columns, rows] = [new Set<number>(), new Set<number>()]
  for (let y = 0; y < height; y += 1) {
    const [from, to] = [y * width * bytesPerPixel, (y + 1) * width * bytesPerPixel]
    if (before.pixels.compare(after.pixels, from, to, from, to) === 0) continue
    rows.add(y)
    for (let i = from; i < to; i += 1) if (before.pixels[i] !== after.pixels[i]) columns.add(Math.floor((i - from) / bytesPerPixel))
  }
  if (rows.size === 0) return null
  const [x, y] = [Math.min(...columns), Math.min(...rows)]
  return { x, y, width: Math.max(...columns) - x + 1, height: Math.max(...rows) - y + 1 }
}

function encode(image: Image, { x, y, width, height }: Rectangle): Buffer {
  const rows = Array.from({ length: height }, (_, row) => {
    const start = ((y + row) * image.width + x) * bytesPerPixel
    return Buffer.concat([Buffer.alloc(1), image.pixels.subarray(start, start + width * bytesPerPixel)])
  })
  return deflateSync(Buffer.concat(rows), { level: 9 })
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  return Buffer.concat([bigEndian(data.length), body, bigEndian(crc32(body))])
}

function bigEndian(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [place, value] of values.entries()) bytes.writeUInt32BE(value, place * 4)
  return bytes
}
