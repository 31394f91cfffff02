/** The schedules of a tenant and their runs. */
import {
  createScheduleBody,
  idSchema,
  listRunsQuery,
  listSchedulesQuery,
  scheduleResponse,
  scheduleRunResponse,
  scheduleRunSchema,
  scheduleSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, pageOf, route } from './route.ts'

const tag = 'schedules'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const
const params = z.object({ id: idSchema })

export const createSchedule = route('POST /v1/schedules', {
  ...writing,
  echoes: 201,
  body: createScheduleBody,
  returns: { 201: scheduleResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.created',
  errors: ['unknown_agent', 'quota_exceeded'],
  doc: 'Creates a schedule',
})

export const listSchedules = route('GET /v1/schedules', {
  ...reading,
  query: listSchedulesQuery,
  returns: { 200: pageOf(scheduleSchema) },
  doc: 'Lists schedules, the oldest first',
})

export const getSchedule = route('GET /v1/schedules/:id', {
  ...reading,
  params,
  returns: { 200: scheduleResponse },
  errors: ['not_found'],
  doc: 'Returns a schedule',
})

export const deleteSchedule = route('DELETE /v1/schedules/:id', {
  ...writing,
  params,
  returns: { 204: nothing },
  audited: 'schedule.deleted',
  errors: ['not_found'],
  doc: 'Deletes a schedule and its history; its tasks stay',
})

export const pauseSchedule = route('POST /v1/schedules/:id/pause', {
  ...writing,
  params,
  returns: { 200: scheduleResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.paused',
  errors: ['not_found'],
  doc: 'Pauses a schedule',
})

export const resumeSchedule = route('POST /v1/schedules/:id/resume', {
  ...writing,
  params,
  returns: { 200: scheduleResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.resumed',
  errors: ['not_found'],
  doc: 'Resumes a schedule: it continues with its next time',
})

export const triggerSchedule = route('POST /v1/schedules/:id/trigger', {
  ...writing,
  addsWork: true,
  params,
  returns: { 202: scheduleRunResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.triggered',
  errors: ['not_found', 'too_many_turns', 'quota_exceeded'],
  doc: 'Starts one run now, by the rule of overlap',
})

export const listScheduleRuns = route('GET /v1/schedules/:id/history', {
  ...reading,
  params,
  query: listRunsQuery,
  returns: { 200: pageOf(scheduleRunSchema) },
  errors: ['not_found'],
  doc: 'Lists the runs of a schedule, the newest first',
})
