/** Builds the programs of the platform into the folder that is named on the command line. */
import { fileURLToPath } from 'node:url'
import { buildPrograms } from './packages/command-line.ts'

await buildPrograms(fileURLToPath(new URL('../', import.meta.url)), process.argv[2] ?? '')
