/** What an agent can do and take, for clients that look for an agent: the skills and the input modes of its A2A card, and what of a request it follows. */
import { z } from 'zod'

export const skillSchema = z.strictObject({
  id: z.string().min(1).max(100),
  name: z.string().min(1).max(200),
  description: z.string().min(1).max(1_000),
  tags: z.array(z.string().min(1).max(50)).max(20).optional(),
  /** Inputs that the skill handles. */
  examples: z.array(z.string().min(1).max(500)).max(20).optional(),
})

export const skillsSchema = z
  .array(skillSchema)
  .min(1)
  .max(50)
  .refine(skills => new Set(skills.map(({ id }) => id)).size === skills.length, 'The ids of skills must be unique')

/** Media types. */
export const inputModesSchema = z
  .array(
    z
      .string()
      .regex(/^[\w.+-]+\/[\w.+*-]+$/, 'Use media types, such as text/plain')
      .max(100),
  )
  .min(1)
  .max(50)

/** The parts of a request that change how an agent works. The API rejects them for an agent that has not announced them. */
export const acceptsSchema = z.strictObject({
  /** A format of the output, as `params.format`. */
  format: z.boolean().optional(),
  /** Tools of the caller, and its choice among them, as `params.tools` and `params.tool_choice`. */
  tools: z.boolean().optional(),
})

export type Accepts = z.output<typeof acceptsSchema>

export type Skill = z.output<typeof skillSchema>
