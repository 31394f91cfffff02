/** The graph that LangGraph's server runs: one node, which sends every delta through its custom stream. */
import { Annotation, type LangGraphRunnableConfig, StateGraph } from '@langchain/langgraph'
import type { Plan } from '../measure/speech.ts'
import { begin } from './langgraph-runs.ts'

const State = Annotation.Root({ plan: Annotation<Plan>, task: Annotation<number>, run: Annotation<string> })

export const graph = new StateGraph(State)
  .addNode('speak', async ({ plan, task, run }: typeof State.State, { writer }: LangGraphRunnableConfig) => {
    await begin({ plan, task, run, send: event => writer?.(event) })
    return {}
  })
  .addEdge('__start__', 'speak')
  .compile()
