/** `npm run generate`: writes what people read of the tables in the code. A test fails when a file is out of date. */
import { readFileSync, writeFileSync } from 'node:fs'
import { generatedFiles } from './generated/files.ts'

for (const [path, contentOf] of Object.entries(generatedFiles)) {
  const file = new URL(`../${path}`, import.meta.url)
  writeFileSync(file, contentOf(readFileSync(file, 'utf8')))
}
