import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findRunning, forgetRunning, noteRunning } from './running-note.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-note-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const note = { pid: process.pid, url: 'http://127.0.0.1:4000', redisUrl: 'redis://127.0.0.1:1' }

test('a platform that runs is found, until it says that it does not', () => {
  const deep = join(folder, 'not', 'there', 'yet')
  noteRunning(deep, note)
  expect(findRunning(deep)).toEqual(note)
  forgetRunning(deep, note.pid)
  expect(findRunning(deep)).toBeNull()
})

test('the note of a process that has ended, and a malformed note, are ignored', () => {
  noteRunning(folder, { ...note, pid: 2 ** 30 })
  expect(findRunning(folder)).toBeNull()
  writeFileSync(join(folder, 'running.json'), '{}')
  expect(findRunning(folder)).toBeNull()
})

test('one platform does not take away the note of another', () => {
  noteRunning(folder, note)
  forgetRunning(folder, note.pid + 1)
  expect(findRunning(folder)).toEqual(note)
})

test('a place that cannot be written to is no reason not to run', () => {
  writeFileSync(join(folder, 'file'), '')
  noteRunning(join(folder, 'file', 'below'), note)
  expect(findRunning(join(folder, 'file', 'below'))).toBeNull()
})

test('only its owner can read it, also where an older one was open to others', () => {
  writeFileSync(join(folder, 'running.json'), '{}', { mode: 0o644 })
  noteRunning(folder, note)
  expect(readdirSync(folder)).toEqual(['running.json'])
  expect(statSync(join(folder, 'running.json')).mode & 0o077).toBe(0)
})
