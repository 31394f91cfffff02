/** The calls that are one request each. Written by `npm run generate`. */
import type * as agents from '@rivulet/contract/agents'
import type * as audit from '@rivulet/contract/audit'
import type * as files from '@rivulet/contract/files'
import type * as keys from '@rivulet/contract/keys'
import type * as limits from '@rivulet/contract/limits'
import type * as messages from '@rivulet/contract/messages'
import type * as schedules from '@rivulet/contract/schedules'
import type * as state from '@rivulet/contract/state'
import type * as store from '@rivulet/contract/store'
import type * as tasks from '@rivulet/contract/tasks'
import type * as tokens from '@rivulet/contract/tokens'
import type * as turns from '@rivulet/contract/turns'
import type * as waits from '@rivulet/contract/waits'
import type * as webhooks from '@rivulet/contract/webhooks'
import type { CallOf } from '../http/call-of.ts'

export type Calls = {
  agents: {
    /** Lists the agents that a worker has registered */ list: CallOf<typeof agents.listAgents>
    /** Pauses or resumes an agent */ change: CallOf<typeof agents.changeAgent>
    /** Removes an agent without workers */ remove: CallOf<typeof agents.removeAgent>
    /** Counts the turns that ended in the last minutes */ read: CallOf<typeof agents.readActivity>
    /** Groups the turns that failed in the last minutes by their reason, the most frequent first */ group: CallOf<typeof agents.groupErrors>
    /** Lists the versions of the workers, the latest heartbeat first */ versions: CallOf<typeof agents.listVersions>
    /** Lists the workers, the latest heartbeat first */ workers: CallOf<typeof agents.listWorkers>
  },
  files: {
    /** Deletes a file that no task refers to */ remove: CallOf<typeof files.deleteFile>
  },
  keys: {
    /** Lists the changes of a tenant and their callers, the newest first */ audit: CallOf<typeof audit.listAudit>
    /** Creates a key and returns it, once */ create: CallOf<typeof keys.createKey>
    /** Lists keys, the oldest first, also revoked and expired keys */ list: CallOf<typeof keys.listKeys>
    /** Revokes a key */ revoke: CallOf<typeof keys.revokeKey>
    /** Creates a key with the terms of an old one, and sets the end of the old one */ rotate: CallOf<typeof keys.rotateKey>
    /** Returns the caller and its permissions */ whoami: CallOf<typeof keys.whoami>
  },
  limits: {
    /** Lists the limits of all agents */ list: CallOf<typeof limits.listLimits>
    /** Returns the limits of an agent */ get: CallOf<typeof limits.getLimits>
    /** Removes the limits of an agent */ remove: CallOf<typeof limits.removeLimits>
    /** Sets the limits of an agent */ set: CallOf<typeof limits.setLimits>
  },
  schedules: {
    /** Creates a schedule */ create: CallOf<typeof schedules.createSchedule>
    /** Lists schedules, the oldest first */ list: CallOf<typeof schedules.listSchedules>
    /** Returns a schedule */ get: CallOf<typeof schedules.getSchedule>
    /** Deletes a schedule and its history; its tasks stay */ remove: CallOf<typeof schedules.deleteSchedule>
    /** Lists the runs of a schedule, the newest first */ history: CallOf<typeof schedules.listScheduleRuns>
    /** Pauses a schedule */ pause: CallOf<typeof schedules.pauseSchedule>
    /** Resumes a schedule: it continues with its next time */ resume: CallOf<typeof schedules.resumeSchedule>
    /** Starts one run now, by the rule of overlap */ trigger: CallOf<typeof schedules.triggerSchedule>
  },
  store: {
    /** Deletes all values of a scope */ clear: CallOf<typeof store.clearStore>
    /** Lists the values of a scope by their keys */ list: CallOf<typeof store.listStore>
    /** Returns a value, with an ETag */ get: CallOf<typeof store.getStored>
    /** Merges an object into a value (RFC 7396) */ patch: CallOf<typeof store.patchStored>
    /** Stores a value */ put: CallOf<typeof store.putStored>
    /** Deletes a value */ remove: CallOf<typeof store.deleteStored>
  },
  tasks: {
    /** Changes the name, the metadata or the secrets of a task */ change: CallOf<typeof tasks.changeTask>
    /** Returns a task, its latest turns and its state */ get: CallOf<typeof tasks.getTask>
    /** Cancels the turns of a task that have not ended */ cancelTask: CallOf<typeof tasks.cancelTask>
    /** Lists the messages of a task by index */ messages: CallOf<typeof messages.listMessages>
    /** Returns one message of a task */ getMessage: CallOf<typeof messages.getMessage>
    /** Runs the last turn of a task again, as a new turn */ retryTurn: CallOf<typeof turns.retryTurn>
    /** Returns the state of a task, with an ETag */ getState: CallOf<typeof state.getState>
    /** Replaces the state of a task between two turns */ putState: CallOf<typeof state.putState>
    /** Lists the latest steps that the turns of a task have taken, the earliest first */ steps: CallOf<typeof tasks.listSteps>
    /** Creates a token for a task, for a browser */ createToken: CallOf<typeof tokens.createToken>
    /** Revokes the tokens of a task that were created before now */ revokeTokens: CallOf<typeof tokens.revokeTokens>
    /** Lists the attempts of a turn, the first one first */ attempts: CallOf<typeof turns.listAttempts>
  },
  waits: {
    /** Sends a signal to a task; it is kept until a turn waits for it */ send: CallOf<typeof waits.sendSignal>
    /** Closes a wait with an answer, so that its turn continues */ answer: CallOf<typeof waits.answerWait>
  },
  webhooks: {
    /** Creates a webhook and returns its secret, once */ create: CallOf<typeof webhooks.createWebhook>
    /** Lists webhooks, the oldest first */ list: CallOf<typeof webhooks.listWebhooks>
    /** Changes a webhook, and returns its new secret if the request changed it */ change: CallOf<typeof webhooks.changeWebhook>
    /** Returns a webhook */ get: CallOf<typeof webhooks.getWebhook>
    /** Deletes a webhook and its deliveries */ remove: CallOf<typeof webhooks.deleteWebhook>
    /** Lists the deliveries of a webhook, the newest first */ deliveries: CallOf<typeof webhooks.listDeliveries>
    /** Sends a delivery again, now */ retry: CallOf<typeof webhooks.retryDelivery>
  },
}

export const calls = {
  agents: {
    list: 'GET /v1/agents - data:agent[]',
    change: 'PATCH /v1/agents/:name body agent:agent',
    remove: 'DELETE /v1/agents/:name - -',
    read: 'GET /v1/agents/activity query',
    group: 'GET /v1/errors query data:object[]',
    versions: 'GET /v1/versions - data:object[]',
    workers: 'GET /v1/workers - data:object[]',
  },
  files: {
    remove: 'DELETE /v1/files/:id - -',
  },
  keys: {
    audit: 'GET /v1/audit query data:object[] nextCursor:json',
    create: 'POST /v1/keys body key:key secret',
    list: 'GET /v1/keys query data:key[] nextCursor:json',
    revoke: 'DELETE /v1/keys/:id - key:key',
    rotate: 'POST /v1/keys/:id/rotate body key:key secret replaced:key',
    whoami: 'GET /v1/whoami - caller:caller',
  },
  limits: {
    list: 'GET /v1/limits - data:limits[]',
    get: 'GET /v1/limits/:agent - limits:limits',
    remove: 'DELETE /v1/limits/:agent - -',
    set: 'PUT /v1/limits/:agent body limits:limits',
  },
  schedules: {
    create: 'POST /v1/schedules body schedule:schedule',
    list: 'GET /v1/schedules query data:schedule[] nextCursor:json',
    get: 'GET /v1/schedules/:id - schedule:schedule',
    remove: 'DELETE /v1/schedules/:id - -',
    history: 'GET /v1/schedules/:id/history query data:object[] nextCursor:json',
    pause: 'POST /v1/schedules/:id/pause - schedule:schedule',
    resume: 'POST /v1/schedules/:id/resume - schedule:schedule',
    trigger: 'POST /v1/schedules/:id/trigger - run:object',
  },
  store: {
    clear: 'DELETE /v1/store/:scope - -',
    list: 'GET /v1/store/:scope query data:object[] nextCursor:json',
    get: 'GET /v1/store/:scope/:key -',
    patch: 'PATCH /v1/store/:scope/:key body',
    put: 'PUT /v1/store/:scope/:key body',
    remove: 'DELETE /v1/store/:scope/:key - -',
  },
  tasks: {
    change: 'PATCH /v1/tasks/:id body task:task',
    get: 'GET /v1/tasks/:id - task:task turns:turn[] state?:state',
    cancelTask: 'POST /v1/tasks/:id/cancel body task:task',
    messages: 'GET /v1/tasks/:id/messages query data:message[] nextCursor:json',
    getMessage: 'GET /v1/tasks/:id/messages/:index - message:message',
    retryTurn: 'POST /v1/tasks/:id/retry body turn:turn',
    getState: 'GET /v1/tasks/:id/state - version:number value:json',
    putState: 'PUT /v1/tasks/:id/state body version:number value:json',
    steps: 'GET /v1/tasks/:id/steps - data:step[]',
    createToken: 'POST /v1/tasks/:id/tokens body token can:string[] expiresAt',
    revokeTokens: 'DELETE /v1/tasks/:id/tokens query -',
    attempts: 'GET /v1/tasks/:id/turns/:number/attempts - data:attempt[]',
  },
  waits: {
    send: 'POST /v1/tasks/:id/signals body status',
    answer: 'POST /v1/tasks/:id/waits/:wait/answer body wait:wait',
  },
  webhooks: {
    create: 'POST /v1/webhooks body webhook:webhook secret',
    list: 'GET /v1/webhooks query data:webhook[] nextCursor:json',
    change: 'PATCH /v1/webhooks/:id body webhook:webhook secret?',
    get: 'GET /v1/webhooks/:id - webhook:webhook',
    remove: 'DELETE /v1/webhooks/:id - -',
    deliveries: 'GET /v1/webhooks/:id/deliveries query data:object[] nextCursor:json',
    retry: 'POST /v1/webhooks/:id/deliveries/:delivery/retry - delivery:object',
  },
} as const
