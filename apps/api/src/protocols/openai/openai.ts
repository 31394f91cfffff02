/** The routes of OpenAI's APIs, below `/openai/v1`. A path below `/openai` that is not there has an error in OpenAI's shape, too. */
import type { Protocol } from '../../http/protocol.ts'
import { chatRoutes, modelRoutes } from './chat/chat.ts'
import { conversationRoutes } from './conversations/conversations.ts'
import { fileRoutes } from './files/files.ts'
import { rejectUnknownOpenAiPaths, sendOpenAiErrors } from './openai-errors.ts'
import { responseRoutes } from './responses/responses.ts'

export const openai: Protocol = async ({ app, services, events, admit }) => {
  await app.register(
    async scope => {
      sendOpenAiErrors(scope)
      admit(scope)
      responseRoutes(scope, services, events)
      chatRoutes(scope, services, events)
      modelRoutes(scope, services)
      conversationRoutes(scope, services)
      await scope.register(async own => fileRoutes(own, services))
    },
    { prefix: '/openai/v1' },
  )
  await app.register(async scope => rejectUnknownOpenAiPaths(scope), { prefix: '/openai' })
}
