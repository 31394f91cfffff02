/** A React page, and every other entry of the packages, for the type checker. */
import { anthropicModel, defineTool, runAgent } from '@rivulet/agent'
import { createClient, RivuletError, type TaskEvent } from '@rivulet/client'
import { RivuletProvider, useTask } from '@rivulet/client/react'
import { createTaskMessageUpdates } from '@rivulet/views/agentex'
import { startTestPlatform } from 'rivulet/testing'
import { z } from 'zod'

export const tool = defineTool({ name: 'add', description: 'adds', input: z.object({ a: z.number() }), run: ({ a }) => a + 1 })
export const kept = [anthropicModel, runAgent, RivuletError, createTaskMessageUpdates, startTestPlatform]
export type Kept = TaskEvent

const client = createClient({ url: '/' })

export function Page() {
  return (
    <RivuletProvider client={client}>
      <Transcript id="a" />
    </RivuletProvider>
  )
}

function Transcript({ id }: { id: string }) {
  const { messages } = useTask(id)
  return <p>{messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join('')}</p>
}
