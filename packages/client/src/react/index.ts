/** Tasks in React: a hook for one task, one for several, and a provider for the client. */
export { RivuletProvider, useClient } from './client-context.ts'
export { type TaskSource, type UsedTask, type UseTaskOptions, useTask } from './use-task.ts'
export { type UseTasksOptions, useTasks } from './use-tasks.ts'
