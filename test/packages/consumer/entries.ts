/** Every entry of the packages that no other file here imports, for the type checker. */
import { anthropicModel, defineTool, runAgent } from '@rivulet/agent'
import { RivuletError, type TaskEvent } from '@rivulet/client'
import { verifyWebhook } from '@rivulet/client/webhooks'
import { putStored } from '@rivulet/contract/store'
import { createTaskBody } from '@rivulet/contract/tasks'
import { createTaskMessageUpdates } from '@rivulet/views/agentex'
import { testTurn } from '@rivulet/worker/testing'
import { startTestPlatform } from 'rivulet/testing'
import { z } from 'zod'

export const tool = defineTool({ name: 'add', description: 'adds', input: z.object({ a: z.number() }), run: ({ a }) => a + 1 })
export const kept = [
  anthropicModel,
  runAgent,
  RivuletError,
  createTaskBody,
  createTaskMessageUpdates,
  putStored,
  startTestPlatform,
  testTurn,
  verifyWebhook,
]
export type Kept = TaskEvent
