/** The frame of every page: where one can go, how it looks, and the keys that work everywhere. */
import { type ReactNode, useState } from 'react'
import { AgentsIcon, HelpIcon, MoonIcon, SunIcon, SystemIcon, TasksIcon } from './elements/icons.tsx'
import { Link } from './elements/link.tsx'
import { Logo } from './elements/logo.tsx'
import { HelpDialog } from './help-dialog.tsx'
import { useKeys } from './hooks/use-keys.ts'
import { type Route, useRoute } from './route.ts'
import { type Theme, useTheme } from './theme.ts'

export function Shell({ children }: { children: ReactNode }) {
  const { page } = useRoute()
  const [isHelping, setHelping] = useState(false)
  const [theme, setTheme] = useTheme()
  useKeys({ '?': () => setHelping(true) })
  const next = nextTheme[theme]
  const ThemeIcon = themeIcons[theme]

  return (
    <div className="flex h-full flex-col md:flex-row">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:bg-panel focus:p-2">
        Skip to the page
      </a>
      <nav
        aria-label="Console"
        className="flex shrink-0 items-center gap-1 border-b border-line px-3 py-1.5 md:w-48 md:flex-col md:items-stretch md:border-r md:border-b-0 md:px-3 md:py-4"
      >
        <Link to="/" aria-label="Rivulet, tasks" className="mr-2 rounded-lg md:mb-5 md:px-2">
          <Logo />
        </Link>
        <Place to="/" isHere={isAt(page, ['tasks', 'task'])} icon={<TasksIcon />}>
          Tasks
        </Place>
        <Place to="/agents" isHere={isAt(page, ['agents'])} icon={<AgentsIcon />}>
          Agents
        </Place>
        <span className="grow" />
        <button
          type="button"
          onClick={() => setTheme(next)}
          aria-label={`Theme: ${theme}. Change to ${next}`}
          className="flex items-center gap-2 rounded-lg p-2 text-soft hover:bg-well hover:text-ink"
        >
          <ThemeIcon />
          <span className="hidden md:inline">{themeNames[theme]}</span>
        </button>
        <button
          type="button"
          onClick={() => setHelping(true)}
          aria-label="Keyboard shortcuts"
          className="flex items-center gap-2 rounded-lg p-2 text-soft hover:bg-well hover:text-ink"
        >
          <HelpIcon />
          <span className="hidden md:inline">Shortcuts</span>
        </button>
      </nav>
      <main id="main" tabIndex={-1} className="min-h-0 min-w-0 grow outline-none">
        {children}
      </main>
      {isHelping && <HelpDialog onClose={() => setHelping(false)} />}
    </div>
  )
}

function Place({ to, isHere, icon, children }: { to: string; isHere: boolean; icon: ReactNode; children: ReactNode }) {
  const look = isHere ? 'bg-accent-well font-medium text-accent' : 'text-soft hover:bg-well hover:text-ink'
  return (
    <Link to={to} aria-current={isHere ? 'page' : undefined} className={`flex items-center gap-2 rounded-lg p-2 ${look}`}>
      {icon}
      {children}
    </Link>
  )
}

function isAt(page: Route['page'], pages: Route['page'][]): boolean {
  return pages.includes(page)
}

const nextTheme: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }
const themeNames: Record<Theme, string> = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' }
const themeIcons = { system: SystemIcon, light: SunIcon, dark: MoonIcon }
