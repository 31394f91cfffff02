/** `npm run docs:variables`: writes what the programs read into docs/operations.md and .env.example. A test fails when that is out of date. */
import { readFileSync, writeFileSync } from 'node:fs'
import { allVariables, exampleOf, withTable } from './variables-table.ts'

const at = (path: string) => new URL(`../${path}`, import.meta.url)

const variables = allVariables()
const page = at('docs/operations.md')
writeFileSync(page, withTable(readFileSync(page, 'utf8'), variables))
writeFileSync(at('.env.example'), exampleOf(variables))
