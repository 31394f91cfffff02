/** `npm run build:console` */
import { buildConsole } from './index.ts'

const startedAt = performance.now()
const isNew = await buildConsole()
console.log(isNew ? `The console was built in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s.` : 'The console is up to date.')
