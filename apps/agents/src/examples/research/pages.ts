/** The pages that scouts read, and how a scout is given one: in the last line of its input. */
import { notes } from './library.ts'

export const pages = [...new Set(notes.map(({ source }) => source))] as [string, ...string[]]

export const pageMark = '\nPage: '
