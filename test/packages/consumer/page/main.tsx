/** A React page that creates a task and shows its text while it streams. */
import { createClient } from '@rivulet/client'
import { RivuletProvider, useTask } from '@rivulet/client/react'
import { createRoot } from 'react-dom/client'

const client = createClient({ url: location.origin })

function Answer() {
  const { messages, status } = useTask({ agent: 'patient', input: 'Ada' })
  const words = messages.map(({ author, content }) => (author === 'agent' && content.type === 'text' ? content.text : '')).join('')
  return <p data-status={status}>{words}</p>
}

createRoot(document.body.appendChild(document.createElement('main'))).render(
  <RivuletProvider client={client}>
    <Answer />
  </RivuletProvider>,
)
