/** Every entry of the packages that no other file here imports, for the type checker. */
import { anthropicModel, defineTool, runAgent } from '@rivulet/agent'
import { RivuletError, type TaskEvent } from '@rivulet/client'
import { createTaskMessageUpdates } from '@rivulet/views/agentex'
import { testTurn } from '@rivulet/worker/testing'
import { startTestPlatform } from 'rivulet/testing'
import { z } from 'zod'

export const tool = defineTool({ name: 'add', description: 'adds', input: z.object({ a: z.number() }), run: ({ a }) => a + 1 })
export const kept = [anthropicModel, runAgent, RivuletError, createTaskMessageUpdates, startTestPlatform, testTurn]
export type Kept = TaskEvent
