/**
 * The environment variables of a program that the CLI starts.
 *
 * A variable that a Rivulet program declares reaches only the programs that declare it. So agents, which can read the whole environment of their
 * worker, do not get the pepper, the root key or the URL of the database. Every other variable is the user's, and reaches all programs.
 */
import { variables as ofWorker, readConfig as readWorkerConfig } from '@rivulet/agents/config'
import { variables as ofApi, readConfig as readApiConfig } from '@rivulet/api/config'
import { variables as ofCommandLine } from '../config.ts'
import type { Environment } from '../context.ts'
import type { Program } from './programs.ts'

const declared: Record<Program, ReadonlySet<string>> = { api: namesIn(ofApi), worker: namesIn(ofWorker) }
const ours = new Set([...declared.api, ...declared.worker, ...namesIn(ofCommandLine)])

/** What Postgres' own clients log in by where a URL leaves it out (PGUSER, PGPASSWORD …): of our programs, only the API connects. */
const databaseLogin = /^PG[A-Z]+$/

export function environmentFor(program: Program, environment: Environment): Environment {
  // A worker that must not reach Redis does not get its password either.
  const isWithoutRedis = program === 'worker' && environment.RIVULET_TRANSPORT === 'http'
  const isWanted = (name: string) => isFor(program, name) && !(isWithoutRedis && name === 'REDIS_URL')
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isWanted(name)))
}

const readers: Record<Program, (environment: Environment) => unknown> = { api: readApiConfig, worker: readWorkerConfig }

/** Throws what the program would exit with, before anything is started for it. An engine that is not started yet has no URL. */
export function requireValidEnvironment(program: Program, environment: Environment): void {
  const engines = {
    REDIS_URL: environment.REDIS_URL || 'redis://127.0.0.1',
    DATABASE_URL: environment.DATABASE_URL || 'postgres://127.0.0.1',
  }
  readers[program](environmentFor(program, { ...environment, ...engines }))
}

function isFor(program: Program, name: string): boolean {
  if (declared[program].has(name)) return true
  return !ours.has(name) && (program === 'api' || !databaseLogin.test(name))
}

function namesIn({ shape }: { shape: object }): ReadonlySet<string> {
  return new Set(Object.keys(shape))
}
