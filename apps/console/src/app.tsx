/** Which page is shown, inside the frame that all of them share. Each page is loaded when it is opened. */
import { type ComponentType, lazy, Suspense, useEffect, useRef } from 'react'
import { ErrorBoundary } from './shell/elements/error-boundary.tsx'
import { MissingPage } from './shell/missing-page.tsx'
import { type Route, routeOf, useRoute } from './shell/route.ts'
import { Session } from './shell/session.tsx'
import { Shell } from './shell/shell.tsx'

const loadTasks = () => import('./tasks/tasks-page.tsx')
const loadTask = () => import('./task/task-page.tsx')
const TasksPage = lazy(async () => ({ default: (await loadTasks()).TasksPage }))
const TaskPage = lazy(async () => ({ default: (await loadTask()).TaskPage }))
const AgentsPage = lazy(async () => ({ default: (await import('./agents/agents-page.tsx')).AgentsPage }))

const DashboardPage = lazy(async () => ({ default: (await import('./operations/dashboard-page.tsx')).DashboardPage }))
const WorkersPage = lazy(async () => ({ default: (await import('./operations/workers-page.tsx')).WorkersPage }))
const ErrorsPage = lazy(async () => ({ default: (await import('./operations/errors-page.tsx')).ErrorsPage }))
const UsagePage = lazy(async () => ({ default: (await import('./operations/usage-page.tsx')).UsagePage }))
const WaitsPage = lazy(async () => ({ default: (await import('./waits/waits-page.tsx')).WaitsPage }))
const AutomationPage = lazy(async () => ({ default: (await import('./automation/automation-page.tsx')).AutomationPage }))
const AuditPage = lazy(async () => ({ default: (await import('./operations/audit-page.tsx')).AuditPage }))
const KeysPage = lazy(async () => ({ default: (await import('./operations/keys-page.tsx')).KeysPage }))

const plainPages: Record<Exclude<Route['page'], 'task'>, ComponentType> = {
  tasks: TasksPage,
  agents: AgentsPage,
  dashboard: DashboardPage,
  workers: WorkersPage,
  errors: ErrorsPage,
  usage: UsagePage,
  schedules: AutomationPage,
  keys: KeysPage,
  audit: AuditPage,
  waits: WaitsPage,
  missing: MissingPage,
}

// The most frequent ones are loaded while the API is asked whose key this is, not after.
const opened = routeOf(location.pathname).page
if (opened === 'tasks') loadTasks().catch(() => {})
if (opened === 'task') loadTask().catch(() => {})

export function App() {
  return (
    <Session frame={content => <Shell>{content}</Shell>}>
      <Page />
    </Session>
  )
}

/** The page of a task is loaded as soon as a person points at a link to one. */
function Page() {
  const route = useRoute()
  const place = route.page === 'task' ? route.id : route.page
  const before = useRef(place)
  useEffect(() => {
    if (before.current !== place) document.getElementById('main')?.focus({ preventScroll: true })
    before.current = place
  }, [place])
  useEffect(() => {
    const look = ({ target }: Event) => {
      if (target instanceof Element && target.closest('a[href^="/tasks/"]')) loadTask().catch(() => {})
    }
    for (const type of ['pointerover', 'focusin']) document.addEventListener(type, look)
    return () => {
      for (const type of ['pointerover', 'focusin']) document.removeEventListener(type, look)
    }
  }, [])
  return (
    <ErrorBoundary place={place}>
      <Suspense fallback={<p className="p-6 text-soft">Loading …</p>}>
        {route.page === 'task' ? <TaskPage key={route.id} id={route.id} /> : <PlainPage page={route.page} />}
      </Suspense>
    </ErrorBoundary>
  )
}

function PlainPage({ page }: { page: Exclude<Route['page'], 'task'> }) {
  const Shown = plainPages[page]
  return <Shown />
}
