/** Which page is shown, inside the frame that all of them share. The list of tasks comes with it; every other page is loaded when it is opened. */
import { type ComponentType, lazy, Suspense, useEffect, useRef, useState } from 'react'
import { AdminsOnly } from './shell/admins-only.tsx'
import { ErrorBoundary } from './shell/elements/error-boundary.tsx'
import { MissingPage } from './shell/missing-page.tsx'
import { isForAdmins, type Route, routeOf, useRoute } from './shell/route.ts'
import { Session, useSession } from './shell/session.tsx'
import { Shell } from './shell/shell.tsx'
import { TasksPage } from './tasks/tasks-page.tsx'

const taskPage = pageOf(async () => (await import('./task/task-page.tsx')).TaskPage)

const plainPages: Record<Exclude<Route['page'], 'task'>, ComponentType> = {
  tasks: TasksPage,
  agents: pageOf(async () => (await import('./agents/agents-page.tsx')).AgentsPage).Shown,
  dashboard: pageOf(async () => (await import('./operations/dashboard-page.tsx')).DashboardPage).Shown,
  workers: pageOf(async () => (await import('./operations/workers-page.tsx')).WorkersPage).Shown,
  errors: pageOf(async () => (await import('./operations/errors-page.tsx')).ErrorsPage).Shown,
  usage: pageOf(async () => (await import('./operations/usage-page.tsx')).UsagePage).Shown,
  schedules: pageOf(async () => (await import('./automation/automation-page.tsx')).AutomationPage).Shown,
  keys: pageOf(async () => (await import('./operations/keys-page.tsx')).KeysPage).Shown,
  audit: pageOf(async () => (await import('./operations/audit-page.tsx')).AuditPage).Shown,
  waits: pageOf(async () => (await import('./waits/waits-page.tsx')).WaitsPage).Shown,
  missing: MissingPage,
}

// Before the first rendering, not after.
if (routeOf(location.pathname).page === 'task') taskPage.load()

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
      if (target instanceof Element && target.closest('a[href^="/tasks/"]')) taskPage.load()
    }
    for (const type of ['pointerover', 'focusin']) document.addEventListener(type, look)
    return () => {
      for (const type of ['pointerover', 'focusin']) document.removeEventListener(type, look)
    }
  }, [])
  return (
    <ErrorBoundary place={place}>
      <Suspense fallback={<p className="p-6 text-soft">Loading …</p>}>
        {route.page === 'task' ? <taskPage.Shown key={route.id} id={route.id} /> : <PlainPage page={route.page} />}
      </Suspense>
    </ErrorBoundary>
  )
}

function PlainPage({ page }: { page: Exclude<Route['page'], 'task'> }) {
  const { may } = useSession()
  const Shown = isForAdmins(page) && !may('admin') ? AdminsOnly : plainPages[page]
  return <Shown />
}

/**
 * A page whose code is loaded when it is opened, or before. If the code is there, the page is drawn at once; a lazy component would show the fallback
 * first, which React keeps for 300 ms.
 */
function pageOf<Props extends object>(importPage: () => Promise<ComponentType<Props>>) {
  let loaded: ComponentType<Props> | null = null
  const loading = async () => {
    loaded = await importPage()
    return { default: loaded }
  }
  const Lazy = lazy(loading)
  // Chosen once, because another component in its place would lose the state of the page.
  function Shown(props: Props) {
    const [Chosen] = useState<ComponentType<Props>>(() => loaded ?? Lazy)
    return <Chosen {...props} />
  }
  return { Shown, load: () => void loading().catch(() => {}) }
}
