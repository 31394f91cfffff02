import { expect, test } from 'vitest'
import * as protocol from './index.ts'
import * as limits from './limits.ts'

// A rule test compares docs/bad-input.md with the exported limits, so a limit that is not exported would be missing there unnoticed.
test('exports every limit', () => {
  expect(Object.keys(protocol)).toEqual(expect.arrayContaining(Object.keys(limits)))
})
