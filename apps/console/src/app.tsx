/** Which page is shown, inside the frame that all of them share. */
import { AgentsPage } from './agents/agents-page.tsx'
import { useRoute } from './shell/route.ts'
import { Session } from './shell/session.tsx'
import { Shell } from './shell/shell.tsx'
import { TaskPage } from './task/task-page.tsx'
import { TasksPage } from './tasks/tasks-page.tsx'

export function App() {
  return (
    <Session>
      <Shell>
        <Page />
      </Shell>
    </Session>
  )
}

function Page() {
  const route = useRoute()
  switch (route.page) {
    case 'tasks':
      return <TasksPage />
    case 'task':
      return <TaskPage key={route.id} id={route.id} />
    case 'agents':
      return <AgentsPage />
    default:
      return route satisfies never
  }
}
