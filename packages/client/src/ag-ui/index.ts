/** `@rivulet/client/ag-ui`: AG-UI's agent over HTTP, with connect and cancel. It needs `@ag-ui/client`. */
export { RivuletAgent } from './rivulet-agent.ts'
