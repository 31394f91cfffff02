/** The feed of a tenant: the changes of all its tasks. */
import { feedPage, feedQuery } from '@rivulet/protocol'
import { route } from './route.ts'

export const readFeed = route('GET /v1/feed', {
  tag: 'feed',
  scope: 'tasks:read',
  ofAgents: true,
  hasNoHead: true,
  query: feedQuery,
  returns: { 200: feedPage.describe('A page; with `Accept: text/event-stream` the entries as they are written') },
  doc: 'Lists the changes of tasks, the oldest first, or streams them as they happen',
})
