/** Schemas of the states. Apart from `status.ts`, so that a reader of events needs no validation library. */
import { z } from 'zod'
import { messageStatuses, outcomeStatuses, stopReasons, taskStatuses, turnStatuses } from './status.ts'

export const messageStatusSchema = z.enum(messageStatuses)
export const turnStatusSchema = z.enum(turnStatuses)
export const taskStatusSchema = z.enum(taskStatuses)
export const outcomeStatusSchema = z.enum(outcomeStatuses)
export const stopReasonSchema = z.enum(stopReasons)
