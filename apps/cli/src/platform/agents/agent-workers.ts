/** The worker processes for files with agents: one with Node, and one with Python if there are files in Python. They restart and stop together. */
import { argumentsOf } from '../programs.ts'
import { type ProcessSpec, type SupervisedProcess, superviseProcess } from '../supervised-process.ts'
import { byLanguage, pythonWorker } from './python.ts'

type AgentWorkersSpec = Omit<ProcessSpec, 'name' | 'command' | 'args'> & {
  /** Without files, the example agents run. */
  files: readonly string[]
  /** For Node alone. */
  nodeOptions?: readonly string[]
}

export function superviseWorkers({ files, nodeOptions = [], ...shared }: AgentWorkersSpec): SupervisedProcess {
  const spec = { ...shared, name: 'worker' }
  const { python, node } = byLanguage(files)
  const processes: SupervisedProcess[] = []
  if (node.length > 0 || python.length === 0)
    processes.push(superviseProcess({ ...spec, args: [...nodeOptions, ...argumentsOf('worker', node)] }))
  if (python.length > 0) processes.push(superviseProcess({ ...spec, ...pythonWorker(python, spec.environment) }))
  return {
    restart: () => {
      for (const own of processes) own.restart()
    },
    stop: async () => void (await Promise.all(processes.map(own => own.stop()))),
  }
}
