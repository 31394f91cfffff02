/** The platform that the tests of a project start. */
import { createClient } from '@rivulet/client'
import { defineAgent } from '@rivulet/worker'
import { startTestPlatform } from 'rivulet/testing'
import { expect, test } from 'vitest'

test('runs agents in the process of the test, so that the test sees what they do', async () => {
  const seen: string[] = []
  const listener = defineAgent('listener', async turn => {
    seen.push(turn.text)
    await turn.send(`heard ${turn.text}`)
  })
  const platform = await startTestPlatform({ agents: [listener], environment: process.env })
  try {
    const client = createClient({ url: platform.url })
    const { text } = await client.run({ agent: 'listener', input: 'a word' })
    expect({ text, seen }).toEqual({ text: 'heard a word', seen: ['a word'] })
  } finally {
    await platform.stop()
  }
})
