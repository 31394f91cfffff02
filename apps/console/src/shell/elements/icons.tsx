/** Line drawings on a grid of 20. All of them are decoration: what they stand beside has a name of its own. */
import type { ReactNode } from 'react'

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      viewBox="0 0 20 20"
      className="size-4 shrink-0"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  )
}

const draw = (path: string) => () => (
  <Icon>
    <path d={path} />
  </Icon>
)

export const TasksIcon = draw('M3 5h1M3 10h1M3 15h1M8 5h9M8 10h9M8 15h9')
export const AuditIcon = draw('M5 3h10v14H5zM8 7h4M8 10h4M8 13h2')
export const AgentsIcon = draw('M4 7h12v9H4zM10 7V4M8 11v1.500M12 11v1.500')
export const HelpIcon = draw(
  'M7.500 7.500a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .8-1 1.700M10 14.500v.01M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16',
)
export const SunIcon = draw(
  'M10 13.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7M10 2v1.500M10 16.500V18M2 10h1.500M16.500 10H18M4.300 4.300l1.100 1.100M14.600 14.600l1.100 1.100M4.300 15.700l1.100-1.100M14.600 5.400l1.100-1.100',
)
export const MoonIcon = draw('M16.500 12A7 7 0 0 1 8 3.500 7 7 0 1 0 16.500 12')
export const SystemIcon = draw('M3 4h14v9H3zM7 17h6M10 13v4')
export const SearchIcon = draw('M9 14.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11M13 13l4 4')
export const FilterIcon = draw('M3 5h14M6 10h8M8.500 15h3')
export const ForkIcon = draw('M6 4v12M6 12c0-4 8-2 8-6M14 6V4M12 4h4')
export const ClipIcon = draw('M7 10l5-5a2.500 2.500 0 0 1 3.500 3.500L9 15a4 4 0 0 1-5.500-5.500L10 3')
export const FileIcon = draw('M5 3h7l3 3v11H5zM12 3v3h3')
export const ClockIcon = draw('M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16M10 5.500V10l3 2')
export const PlusIcon = draw('M10 4v12M4 10h12')
export const StopIcon = draw('M5.500 5.500h9v9h-9z')
export const LinkIcon = draw(
  'M8.500 11.500a3 3 0 0 0 4.300 0l3-3a3 3 0 0 0-4.300-4.300l-1 1M11.500 8.500a3 3 0 0 0-4.300 0l-3 3a3 3 0 0 0 4.300 4.300l1-1',
)
export const CopyIcon = draw('M7 7h9v9H7zM4 13V4h9')
export const DoneIcon = draw('M4 10.500l4 4 8-9')
export const ChevronIcon = draw('M8 5l5 5-5 5')
export const BackIcon = draw('M12 5l-5 5 5 5')
export const ToolIcon = draw(
  'M12.500 3.500a4 4 0 0 0-4.700 5.200L3.500 13v3.500H7l4.300-4.300a4 4 0 0 0 5.200-4.700l-2.300 2.300-2.500-.5-.5-2.500z',
)
export const InspectIcon = draw('M3 4h14M3 8h8M3 12h5M3 16h3M14 17a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7M16.500 16l1.500 1.500')
export const DownIcon = draw('M10 4v12M5 11l5 5 5-5')
export const SendIcon = draw('M10 16V4M5 9l5-5 5 5')
export const CloseIcon = draw('M5 5l10 10M15 5L5 15')
export const SignOutIcon = draw('M8 4H4v12h4M12 6l4 4-4 4M16 10H8')
export const WorkersIcon = draw(
  'M5 5h10v10H5zM8 8h4v4H8zM8 5V2.500M12 5V2.500M8 17.500V15M12 17.500V15M5 8H2.500M5 12H2.500M17.500 8H15M17.500 12H15',
)
export const ErrorsIcon = draw('M10 3l8 14H2zM10 8v4M10 14.500v.01')
export const KeysIcon = draw(
  'M13 10a3.500 3.500 0 1 0-3.500-3.500c0 .5.1 1 .3 1.400L3 14.700V17h3v-2h2v-2l1.600-1.600A3.500 3.500 0 0 0 13 10M13.500 6.500v.01',
)
export const DashboardIcon = draw('M3 17h14M5 14v-4M9 14V5M13 14V8M17 14v-2')
export const UsageIcon = draw(
  'M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16M12.500 7.500c-.4-.9-1.300-1.500-2.500-1.500-1.500 0-2.500.8-2.500 2s1 1.700 2.500 2 2.500.8 2.500 2-1 2-2.500 2c-1.200 0-2.100-.6-2.500-1.500M10 4.500V6M10 14v1.500',
)
export const WaitsIcon = draw('M10 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6M4 17a6 6 0 0 1 12 0M10 12.500v2l1.500 1')
export const AgainIcon = draw('M16 10a6 6 0 1 1-2-4.500M16 3v3.500h-3.500')
export const EditIcon = draw('M4 16l1-4 8-8 3 3-8 8zM11 6l3 3')
export const TrashIcon = draw('M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11')
export const DownloadIcon = draw('M10 3v9M6 9l4 4 4-4M4 17h12')
export const ShareIcon = draw('M8 12l5-5M9 5l1-1a3.500 3.500 0 0 1 5 5l-2 2M11 15l-1 1a3.500 3.500 0 0 1-5-5l2-2')
export const MoreIcon = draw('M4.500 10h1M9.500 10h1M14.500 10h1')
export const FactsIcon = draw('M4 4h12v12H4zM7 8h6M7 11h6M7 14h3')
