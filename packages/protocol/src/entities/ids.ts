/** Ids and names, as every part of the platform compares them. */
import { z } from 'zod'

/**
 * Ids of one kind are not accepted for those of another. A plain string is, because the edges have checked it (`idSchema`), and because users of the
 * packages hold plain strings.
 */
export type TaskId = string & { readonly idOf?: 'task' }
export type TurnId = string & { readonly idOf?: 'turn' }

/** For the names of agents and of tenants. */
export const nameRule = 'Use 1 to 64 characters of a-z, 0-9, _ and -'
export const nameSchema = z.string().regex(/^[a-z0-9_-]{1,64}$/, nameRule)
export const agentNameSchema = nameSchema
/**
 * The id of a task or a turn, in the one form that the platform uses inside. Postgres takes several spellings for the same id, Redis and the hub
 * compare text: capitals are accepted and become small letters here, every other spelling is refused.
 */
export const idSchema = z.uuid().toLowerCase()
export const taskIdSchema = idSchema as unknown as z.ZodType<TaskId, string>
export const turnIdSchema = idSchema as unknown as z.ZodType<TurnId, string>
