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
  errors: ['bad_cursor', 'feed_expired', 'too_many_streams', 'overloaded'],
  doc: 'Lists the changes of tasks, the oldest first, or streams them as they happen',
  note: '[An event stream](#the-feed) if the request accepts one',
})
