import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

test('a page gets at most 20 kB of gzip for the whole client and its hooks, and no validation library', async () => {
  const { outputFiles, metafile } = await build({
    stdin: {
      contents: "export * from './index.ts'; export * from './react/index.ts'",
      resolveDir: fileURLToPath(new URL('.', import.meta.url)),
    },
    ...{ bundle: true, minify: true, format: 'esm', write: false, metafile: true, external: ['react'] },
  })
  const used = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs))
  expect(used.filter(file => file.includes('node_modules'))).toEqual([])
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThanOrEqual(20_000)
})
