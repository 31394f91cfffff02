/** A parent of three children: it sends a scout to each page, waits for them without a worker, and reports what they found. */
import { agentTool, call, type ModelRequest, type ScriptStep, say, think } from '@rivulet/agent'
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import { z } from 'zod'
import { chooseModel, type ProviderSettings } from '../model-choice.ts'
import { latestQuestion } from './latest-question.ts'
import { nothing } from './offline-scout.ts'
import { pageMark, pages } from './pages.ts'

const instructions = `You research questions about Rivulet. Send a scout to each of these pages at once: ${pages.join(', ')}. Then write one report.`

const scoutTool = agentTool('scout', {
  description: 'Looks a question up on one page',
  input: z.object({ question: z.string().min(1).max(2_000), page: z.enum(pages) }),
  inputOf: ({ question, page }) => `${question}${pageMark}${page}`,
})

export function createResearcher(provider: ProviderSettings): AgentDefinition {
  const model = chooseModel(provider, researchOffline)
  return defineAgent(
    'researcher',
    async turn => {
      await turn.run({ model, tools: [scoutTool], system: instructions })
    },
    { description: 'Researches a question about Rivulet with three scouts: agents of their own' },
  )
}

/** The researcher without a configured model: a function of the conversation, like a model. */
export function researchOffline({ messages }: Pick<ModelRequest, 'messages'>): ScriptStep {
  const { question, since } = latestQuestion(messages)
  const reports = since.flatMap(({ content }) => (content.type === 'tool_response' && !content.isError ? [String(content.content)] : []))
  if (since.some(({ content }) => content.type === 'tool_response')) return [think('All scouts are back.'), say(digestOf(reports))]
  const asked = question.trim().slice(0, 2_000).toWellFormed()
  if (asked === '') return [say('Ask me something about Rivulet: how it cancels, for example, and what becomes of slow viewers.')]
  const errands = pages.map(page => call('scout', { question: asked, page }))
  return [think(`There are ${pages.length} pages. I send a scout to each.`), say('Let me look that up. '), ...errands]
}

function digestOf(reports: readonly string[]): string {
  const found = reports.filter(report => report.trim() !== '' && !report.endsWith(nothing))
  return found.length > 0 ? found.join('\n\n') : nothing
}
