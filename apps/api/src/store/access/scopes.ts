/** The permissions of a key. `admin` includes both scopes of tasks; `worker` is for `/internal` alone. */
export const scopes = ['tasks:read', 'tasks:write', 'admin', 'worker'] as const

export type Scope = (typeof scopes)[number]
