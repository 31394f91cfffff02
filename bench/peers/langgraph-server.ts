/** LangGraph's JavaScript server, with its store in memory. */
import { fileURLToPath } from 'node:url'
import { startServer } from '@langchain/langgraph-api/server'
import { handleRequests } from '../child.ts'
import { runOf } from './langgraph-runs.ts'

const [cwd = '', port = '0', concurrentRuns = '0'] = process.argv.slice(2)
const path = fileURLToPath(new URL('langgraph-graph.ts', import.meta.url))
await startServer({ port: Number(port), host: '127.0.0.1', nWorkers: Number(concurrentRuns), cwd, graphs: { speaker: `${path}:graph` } })

handleRequests({
  waiting: (name: string) => runOf(name).waiting,
  speak: (name: string) => runOf(name).speak.open(),
  sentAll: (name: string) => runOf(name).sentAll,
  end: (name: string) => runOf(name).end.open(),
})
process.on('SIGTERM', () => process.exit(0))
