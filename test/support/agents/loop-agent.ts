/** An agent with a model and a tool that both live outside its process, at `params.url`, so that a test counts what they are asked. */
import { defineTool, openaiModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

export default defineAgent('looper', async turn => {
  const { url } = turn.params as { url: string }
  const model = openaiModel({ baseUrl: `${url}/v1`, model: 'm' })
  const look = defineTool({
    name: 'look',
    description: 'Looks at a thing',
    input: z.object({ thing: z.string() }),
    run: async ({ thing }, { signal }) => {
      const response = await fetch(`${url}/look/${thing}`, { signal })
      if (!response.ok) throw new Error('It is not to be seen')
      return response.text()
    },
  })
  await turn.run({ model, tools: [look] })
})
