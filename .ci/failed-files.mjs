/**
 * Prints the test files that failed, one a line, from the JSON report of vitest.
 * Prints nothing if the run failed for another reason, such as an error outside of a test.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failedFiles = testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(process.cwd(), name))
process.stdout.write(failedFiles.map(file => `${file}\n`).join(''))
