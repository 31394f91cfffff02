/** Tasks in React: one hook, and a provider for the client. */
export { RivuletProvider, useClient } from './client-context.ts'
export { type TaskSource, type UsedTask, type UseTaskOptions, useTask } from './use-task.ts'
