/**
 * Streaming and deltas, as agentkit's book has them: a transient delta is not a stored part. Reasoning comes first, then text in four chunks, then two calls
 * whose arguments interleave by index. Viewers see every chunk; stored are whole parts.
 */
import { defineAgent, delta, done, reasoning, start, toolRequest } from '@rivulet/worker'

const fragment = (index: number, text: string) => delta(index, { type: 'tool_request', text })

export default defineAgent('agentkit-book', async function* () {
  yield start(0, reasoning())
  yield delta(0, { type: 'reasoning_content', index: 0, text: 'A known question.' })
  yield done(0)
  for (const chunk of ['The ', 'answer', ' is ', '42.']) yield delta(1, chunk)
  yield done(1)
  yield start(2, toolRequest('call-7', 'read_file'))
  yield start(3, toolRequest('call-8', 'read_file'))
  yield fragment(2, '{"path": ')
  yield fragment(3, '{"path": "src/')
  yield fragment(2, '"src/main.rs"}')
  yield fragment(3, 'lib.rs"}')
})
