/**
 * The state of an event stream. `idle`: it has no listener. `connecting`: a request is on its way. `live`: connected. `waiting`: cut off, and
 * reconnecting. `ended`: the task has ended, and all events were received. `failed`: a final error.
 */
export type ConnectionStatus = 'idle' | 'connecting' | 'live' | 'waiting' | 'ended' | 'failed'
