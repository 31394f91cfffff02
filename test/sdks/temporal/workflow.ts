/** A workflow of Temporal: each call of an activity is a task of Rivulet, whose events any viewer can watch meanwhile. */
import { proxyActivities } from '@temporalio/workflow'
import type { Activities } from './activities.ts'

const { runTask } = proxyActivities<Activities>({ startToCloseTimeout: '10 minutes', heartbeatTimeout: '30 seconds' })

export async function answerAndReview(question: string): Promise<string> {
  const draft = await runTask('assistant', question)
  return runTask('assistant', `Review this answer: ${draft}`)
}
