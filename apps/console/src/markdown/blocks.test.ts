import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Block, type Blocks, growBlocks, maxBlock } from './blocks.ts'
import { codeOf } from './code-text.ts'

const all = ({ pages, rest, tail }: Blocks): Block[] => [...pages.flat(), ...rest, ...tail]
const textsOf = (source: string) => all(growBlocks(null, source)).map(({ text }) => text)

describe('blocks', () => {
  test('end at a blank line', () => {
    expect(textsOf('# One\n\ntwo\nthree\n\nfour')).toEqual(['# One\n\n', 'two\nthree\n\n', 'four'])
  })

  test('keep a list together, also with blank lines and indented paragraphs', () => {
    expect(textsOf('- a\n\n  more\n\n- b\n\nafter')).toEqual(['- a\n\n  more\n\n- b\n\n', 'after'])
    expect(textsOf('1. a\n\n2. b')).toEqual(['1. a\n\n2. b'])
  })

  test('know code by its fence, whatever it holds', () => {
    const [before, code, after] = all(growBlocks(null, 'see\n```ts\nlet a\n\n# no heading\n```\nafter'))
    expect(before?.text).toBe('see\n')
    expect(code?.fence).toEqual({ at: 4, language: 'ts', isFirst: true, isLast: true })
    expect(code && codeOf(code)).toBe('let a\n\n# no heading')
    expect(after?.text).toBe('after')
  })

  test('show code before its fence is closed', () => {
    const [code] = all(growBlocks(null, '```py\nprint(1)\npri'))
    expect(code && codeOf(code)).toBe('print(1)\npri')
  })

  test('cut what is too long, and code into pieces of one fence', () => {
    const words = all(growBlocks(null, 'word '.repeat(maxBlock)))
    expect(words.length).toBeGreaterThan(4)
    for (const { text } of words) expect(text.length).toBeLessThanOrEqual(maxBlock)
    const pieces = all(growBlocks(null, `\`\`\`js\n${'x()\n'.repeat(maxBlock)}\`\`\`\n`))
    expect(pieces.length).toBeGreaterThan(3)
    expect(pieces.every(({ fence }) => fence?.at === 0)).toBe(true)
    expect(pieces.filter(({ fence }) => fence?.isFirst)).toHaveLength(1)
    expect(pieces.filter(({ fence }) => fence?.isLast)).toHaveLength(1)
    expect(pieces.map(codeOf).join('')).toBe('x()\n'.repeat(maxBlock).trimEnd())
  })
})

describe('blocks of a text that grows', () => {
  const line = fc.constantFrom(
    '',
    '# h',
    'word',
    '- item',
    '1. one',
    '  indented',
    '```',
    '```ts',
    '~~~',
    '> quote',
    '| a | b |',
    '<b>',
    'x'.repeat(9_000),
  )
  const source = fc.array(line, { maxLength: 40 }).map(lines => lines.join('\n'))

  test('are those of the whole text, however it came', () => {
    fc.assert(
      fc.property(source, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 200 }), (whole, steps) => {
        let grown: Blocks | null = null
        for (let end = 0, step = 0; end < whole.length; step += 1) {
          end = Math.min(whole.length, end + (steps[step % steps.length] ?? 1) * (whole.length > 5_000 ? 97 : 1))
          grown = growBlocks(grown, whole.slice(0, end))
          expect(
            all(grown)
              .map(({ text }) => text)
              .join(''),
          ).toBe(whole.slice(0, end))
        }
        expect(all(growBlocks(grown, whole))).toEqual(all(growBlocks(null, whole)))
      }),
      { numRuns: 300 },
    )
  })

  test('stay the same objects once they are closed, page by page', () => {
    const paragraphs = Array.from({ length: 100 }, (_, number) => `paragraph ${number}\n\n`)
    const before = growBlocks(null, paragraphs.join(''))
    const after = growBlocks(before, `${paragraphs.join('')}more`)
    expect(before.pages.length).toBe(3)
    expect(after.pages.every((page, place) => page === before.pages[place])).toBe(true)
  })

  test('begin anew when the text is another', () => {
    expect(all(growBlocks(growBlocks(null, 'one\n\ntwo'), 'three')).map(({ text }) => text)).toEqual(['three'])
  })
})
