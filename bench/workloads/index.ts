import type { Workload } from '../bench.ts'
import { accumulator } from './accumulator.ts'
import { append } from './append.ts'
import { enqueue } from './enqueue.ts'
import { fairness } from './fairness.ts'
import { fanOut } from './fan-out.ts'
import { finish } from './finish.ts'
import { fullSpeed } from './full-speed.ts'
import { growth } from './growth.ts'
import { lateJoin } from './late-join.ts'
import { latency } from './latency.ts'
import { many } from './many.ts'
import { memory } from './memory.ts'
import { paced } from './paced.ts'
import { twoOfEach } from './two-of-each.ts'

export const workloads: Workload[] = [
  fanOut,
  fullSpeed,
  paced,
  latency,
  lateJoin,
  enqueue,
  append,
  finish,
  memory,
  growth,
  twoOfEach,
  many,
  fairness,
  accumulator,
]
