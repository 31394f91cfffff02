/** Loaded into the API process before its program, for workloads that need a probe. */
import { handleRequests } from '../child.ts'
import { createProbe } from './probe.ts'

handleRequests(createProbe())
