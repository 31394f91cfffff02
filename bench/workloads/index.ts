import type { Workload } from '../bench.ts'
import { accumulator } from './accumulator.ts'
import { append } from './append.ts'
import { enqueue } from './enqueue.ts'
import { fairness } from './fairness.ts'
import { files } from './files.ts'
import { finish } from './finish.ts'
import { tasks } from './growth/tasks.ts'
import { viewers } from './growth/viewers.ts'
import { capacity } from './streams/capacity.ts'
import { fanOut } from './streams/fan-out.ts'
import { fullSpeed } from './streams/full-speed.ts'
import { joins } from './streams/joins.ts'
import { lateJoin } from './streams/late-join.ts'
import { latency } from './streams/latency.ts'
import { many } from './streams/many.ts'
import { paced } from './streams/paced.ts'
import { transport } from './streams/transport.ts'
import { twoOfEach } from './streams/two-of-each.ts'

export const workloads: Workload[] = [
  fanOut,
  fullSpeed,
  paced,
  latency,
  lateJoin,
  joins,
  enqueue,
  append,
  finish,
  tasks,
  viewers,
  twoOfEach,
  many,
  fairness,
  files,
  capacity,
  transport,
  accumulator,
]
