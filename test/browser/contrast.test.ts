/** Colours that can be read: WCAG AA, in both themes, wherever a text colour may stand. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const css = readFileSync(new URL('../../apps/console/src/styles.css', import.meta.url), 'utf8')

const colors = new Map(
  [...css.matchAll(/--color-([\w-]+): light-dark\(#([\da-f]{6}), #([\da-f]{6})\)/g)].map(([, name = '', light = '', dark = '']) => [
    name,
    { light, dark },
  ]),
)
const surfaces = ['page', 'panel', 'well']
const pairs = [
  ...['ink', 'soft', 'faint', 'accent', 'good', 'warn', 'bad'].flatMap(text => surfaces.map(surface => [text, surface])),
  ...['good', 'warn', 'bad', 'accent'].map(name => [name, `${name}-well`]),
  ...[
    ['ink', 'accent-well'],
    ['soft', 'accent-well'],
    ['faint', 'accent-well'],
    ['accent-ink', 'accent'],
  ],
] as [string, string][]

describe.each(['light', 'dark'] as const)('the %s theme', theme => {
  test.each(pairs)('%s on %s can be read', (text, surface) => {
    expect(contrast(colors.get(text)?.[theme], colors.get(surface)?.[theme])).toBeGreaterThanOrEqual(4.5)
  })

  test.each(surfaces)('the edge of a field can be seen on %s', surface => {
    expect(contrast(colors.get('line-strong')?.[theme], colors.get(surface)?.[theme])).toBeGreaterThanOrEqual(3)
  })
})

function contrast(one = '000000', other = '000000'): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map(at => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
