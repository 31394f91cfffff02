/** Every protocol of another front end, by what it has: routes of its own, or a name in `?format=`. */
import type { Protocols } from '../http/protocol.ts'
import { a2a } from './a2a/a2a.ts'
import { agUi } from './ag-ui/ag-ui.ts'
import { formats } from './formats.ts'
import { mcp } from './mcp/mcp.ts'
import { openai } from './openai/openai.ts'

export const protocols: Protocols = { withRoutes: [openai, agUi, a2a, mcp], formats }
