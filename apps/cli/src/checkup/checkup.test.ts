import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { type CheckupOptions, checkNode, checkUp, type Finding } from './checkup.ts'

test('a Node that is too old is named', () => {
  expect(checkNode('20.19.0')).toContain('Node 20.19.0')
  expect(checkNode('22.0.0')).toContain('Node 22.0.0')
  expect(() => checkNode('20.18.9')).toThrow('Node 20.18.9 is not supported; Rivulet needs >=20.19')
})

test('servers that were named are asked, not replaced; a platform that is not there need not be', async () => {
  const findings = await withFolder(dataDir => findingsOf({ dataDir }))
  const verdicts = findings.map(({ name, verdict }) => `${name} ${verdict}`)
  expect(verdicts).toEqual([
    ...['node works', 'packages works', expect.stringMatching(/^python (works|lacks)$/), 'data works', 'redis works', 'postgres works'],
    ...['port works', 'platform lacks'],
  ])
  expect(findings.find(({ name }) => name === 'redis')?.detail).toContain('as the environment says')
})

test('a server that was named and is not there, and a platform that was said to be there, fail', async () => {
  const findings = await withFolder(dataDir => findingsOf({ dataDir, redisUrl: 'redis://127.0.0.1:1', isConnectionGiven: true }))
  expect(findings.filter(({ verdict }) => verdict === 'fails').map(({ name, detail }) => `${name}: ${detail}`)).toEqual([
    'redis: 127.0.0.1:1 refuses connections',
    'platform: No Rivulet at http://127.0.0.1:2: start one with npm start',
  ])
})

test('a port that another program holds fails', async () => {
  const other = createServer(socket => socket.on('error', () => {}).end('no')).listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = other.address()
  const port = typeof address === 'object' && address ? address.port : 0
  try {
    const findings = await withFolder(dataDir => findingsOf({ dataDir, port }))
    expect(findings.find(({ name }) => name === 'port')).toMatchObject({
      verdict: 'fails',
      detail: expect.stringContaining('taken by another program'),
    })
  } finally {
    other.close()
  }
})

test("without servers of one's own, the engines are started for a trial", async () => {
  const findings = await withFolder(dataDir => findingsOf({ dataDir, redisUrl: undefined, databaseUrl: undefined }))
  for (const name of ['redis', 'postgres']) {
    expect(findings.find(finding => finding.name === name)).toMatchObject({
      verdict: 'works',
      detail: expect.stringMatching(/\d.* starts and stops$/),
    })
  }
})

async function findingsOf(options: Partial<CheckupOptions> & { dataDir: string }): Promise<Finding[]> {
  const findings: Finding[] = []
  const all: CheckupOptions = {
    ...{ host: '127.0.0.1', port: 0, path: process.env.PATH, connection: { url: 'http://127.0.0.1:2' }, isConnectionGiven: false },
    ...{ redisUrl: inject('redisUrl'), databaseUrl: inject('postgresUrl') },
    ...options,
  }
  for await (const finding of checkUp(all)) findings.push(finding)
  return findings
}

async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-checkup-'))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
