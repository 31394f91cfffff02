/** The frame of every page: where one can go, whose page it is, how it looks, and the keys that work everywhere. */

import { useClient } from '@rivulet/client/react'
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { keepPage } from '../files/use-dropped-files.ts'
import { useOpenCount } from '../waits/use-waits.ts'
import { AccountMark } from './account-mark.tsx'
import {
  AgentsIcon,
  AuditIcon,
  ClockIcon,
  DashboardIcon,
  ErrorsIcon,
  HelpIcon,
  KeysIcon,
  MoonIcon,
  SunIcon,
  SystemIcon,
  TasksIcon,
  UsageIcon,
  WaitsIcon,
  WorkersIcon,
} from './elements/icons.tsx'
import { Link } from './elements/link.tsx'
import { Logo } from './elements/logo.tsx'
import { useFollowedFeed } from './feed.ts'
import { useKeys } from './hooks/use-keys.ts'
import { isForAdmins, listPath, type Route, useRoute } from './route.ts'
import { useSession } from './session.tsx'
import { type Theme, useTheme } from './theme.ts'

const HelpDialog = lazy(async () => ({ default: (await import('./help-dialog.tsx')).HelpDialog }))

type Place = { to: string; name: string; pages: Route['page'][]; icon: ReactNode; Count?: ComponentType }

const places: Place[] = [
  { to: '/', name: 'Tasks', pages: ['tasks', 'task'], icon: <TasksIcon /> },
  { to: '/waits', name: 'Waiting for people', pages: ['waits'], icon: <WaitsIcon />, Count: OpenCount },
  { to: '/dashboard', name: 'Dashboard', pages: ['dashboard'], icon: <DashboardIcon /> },
  { to: '/errors', name: 'Errors', pages: ['errors'], icon: <ErrorsIcon /> },
  { to: '/usage', name: 'Usage', pages: ['usage'], icon: <UsageIcon /> },
  { to: '/agents', name: 'Agents', pages: ['agents'], icon: <AgentsIcon /> },
  { to: '/workers', name: 'Workers', pages: ['workers'], icon: <WorkersIcon /> },
  { to: '/schedules', name: 'Schedules and webhooks', pages: ['schedules'], icon: <ClockIcon /> },
  { to: '/keys', name: 'Keys', pages: ['keys'], icon: <KeysIcon /> },
  { to: '/audit', name: 'Audit log', pages: ['audit'], icon: <AuditIcon /> },
]

export function Shell({ children }: { children: ReactNode }) {
  const { page } = useRoute()
  const { may, shared } = useSession()
  const [isHelping, setHelping] = useState(false)
  useFollowedFeed(useClient(), shared === null && may('tasks:read'))
  useKeys({ '?': () => setHelping(true) })
  useEffect(keepPage, [])

  return (
    <div className="flex h-full flex-col overflow-y-auto md:flex-row md:overflow-hidden">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:bg-panel focus:p-2">
        Skip to the page
      </a>
      <header className="flex shrink-0 flex-wrap items-center gap-x-1 border-b border-line px-3 py-1 md:w-48 md:flex-col md:flex-nowrap md:items-stretch md:overflow-y-auto md:border-r md:border-b-0 md:py-4">
        <Link to="/" aria-label="Rivulet, tasks" className="mr-auto rounded-lg py-1 md:mr-0 md:mb-4 md:px-2">
          <Logo />
        </Link>
        {!shared && (
          <nav aria-label="Console" className="order-1 flex w-full gap-1 overflow-x-auto md:order-none md:flex-col md:overflow-visible">
            {places
              .filter(({ pages }) => !pages.some(isForAdmins) || may('admin'))
              .map(({ to, name, pages, icon, Count }) => (
                <PlaceLink key={to} to={to === '/' ? listPath() : to} isHere={pages.includes(page)} icon={icon}>
                  {name}
                  {Count && <Count />}
                </PlaceLink>
              ))}
          </nav>
        )}
        <span className="hidden grow md:block" />
        <AccountMark />
        <ThemeButton />
        <IconButton name="Keyboard shortcuts" label="Shortcuts" icon={<HelpIcon />} onClick={() => setHelping(true)} />
      </header>
      {/* On a screen as low as that of a phone at 400 %, the page scrolls as a whole. */}
      <main id="main" tabIndex={-1} className="min-h-0 min-w-0 grow outline-none max-md:[@media(max-height:480px)]:min-h-104">
        {children}
      </main>
      <Suspense>{isHelping && <HelpDialog onClose={() => setHelping(false)} />}</Suspense>
    </div>
  )
}

/** How many waits are open. */
function OpenCount() {
  const count = useOpenCount()
  if (count === '') return null
  return <span className="ml-auto rounded-full bg-warn-well px-1.5 text-xs font-medium text-warn tabular-nums">{count}</span>
}

function ThemeButton() {
  const [theme, setTheme] = useTheme()
  const next = nextTheme[theme]
  const ThemeIcon = themeIcons[theme]
  return (
    <IconButton
      name={`${themeNames[theme]}. Change to ${next}`}
      label={themeNames[theme]}
      icon={<ThemeIcon />}
      onClick={() => setTheme(next)}
    />
  )
}

/** On a phone, the icon alone. */
function IconButton({ name, label, icon, onClick }: { name: string; label: string; icon: ReactNode; onClick: () => void }) {
  return (
    <button
      type="button"
      onClick={onClick}
      aria-label={name}
      className="flex items-center gap-2 rounded-lg p-2 text-soft hover:bg-well hover:text-ink"
    >
      {icon}
      <span className="hidden md:inline">{label}</span>
    </button>
  )
}

function PlaceLink({ to, isHere, icon, children }: { to: string; isHere: boolean; icon: ReactNode; children: ReactNode }) {
  const look = isHere ? 'bg-accent-well font-medium text-accent' : 'text-soft hover:bg-well hover:text-ink'
  const place = useRef<HTMLAnchorElement>(null)
  // On a phone the navigation scrolls by itself.
  useEffect(() => {
    if (isHere) place.current?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [isHere])
  return (
    <Link
      ref={place}
      to={to}
      aria-current={isHere ? 'page' : undefined}
      className={`flex shrink-0 items-center gap-2 rounded-lg p-2 -outline-offset-2 ${look}`}
    >
      {icon}
      {children}
    </Link>
  )
}

const nextTheme: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }
const themeNames: Record<Theme, string> = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' }
const themeIcons = { system: SystemIcon, light: SunIcon, dark: MoonIcon }
