/**
 * Describes in one line why a file could not be loaded, with the place: `agents.ts:3:10: Unexpected ";"`.
 *
 * The place is in the message of a compiler error, above the stack of a linker error, in the first frame of an error that the file throws, and nowhere
 * in two cases: a missing import, whose line is searched for, and a syntax error in plain JavaScript, for which Node checks the file once more.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export function describeLoadFailure(path: string, error: unknown): string {
  if (!(error instanceof Error)) return `${fromHere(path)}: ${String(error)}`
  const compiled = /^(\/.*?:\d+:\d+): ERROR: (.*)$/m.exec(error.message)
  if (compiled) return `${fromHere(compiled[1] ?? path)}: ${compiled[2]}`
  const [reason = ''] = error.message.split('\n')
  const place = placeOfImport(error.message) ?? placeInStack(error.stack ?? '') ?? placeOfSyntaxError(path, error) ?? path
  return `${fromHere(place)}: ${reason}`
}

/** Node names the importing file but not the line. */
function placeOfImport(message: string): string | null {
  const missing = /^Cannot find (?:module|package) '(.+)' imported from (\S.*)$/m.exec(message)
  if (!missing) return null
  const [, wanted = '', importer = ''] = missing
  const file = toPath(importer)
  // Without the extension, because the loader of TypeScript may have tried another one.
  const name = basename(wanted).replace(/\.[^.]*$/, '')
  const line = readLines(file).findIndex(text => /\b(import|export|from|require)\b/.test(text) && text.includes(name))
  return line < 0 ? file : `${file}:${line + 1}`
}

function placeInStack(stack: string): string | null {
  const heading = /^((?:file:\/\/)?\/.*:\d+)\n/.exec(stack)
  if (heading) return toPath(heading[1] ?? '')
  // The frames after `importFile` are ours.
  const [theirs = ''] = stack.split(/\n {4}at (?:async )?importFile\b/)
  const frames = theirs.matchAll(/\n {4}at (?:.*\()?((?:file:\/\/)?\/[^\n]*:\d+:\d+)\)?/g)
  const frame = Array.from(frames, ([, place = '']) => place).find(place => !place.includes('/node_modules/'))
  return frame === undefined ? null : toPath(frame)
}

function placeOfSyntaxError(path: string, error: Error): string | null {
  if (error.name !== 'SyntaxError') return null
  const { stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8' })
  return /^(\/.*:\d+)$/m.exec(stderr)?.[1] ?? null
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    return []
  }
}

function toPath(place: string): string {
  return place.startsWith('file:') ? fileURLToPath(place) : place
}

function fromHere(place: string): string {
  const path = relative(process.cwd(), place)
  return path.startsWith('..') ? place : path
}
