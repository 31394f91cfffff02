/**
 * Where a stream of events stands. `idle`: nobody listens. `connecting`: a request is on its way. `live`: connected. `waiting`: cut off, and
 * coming back by itself. `ended`: the task has ended, and everything was told. `failed`: refused for good.
 */
export type ConnectionStatus = 'idle' | 'connecting' | 'live' | 'waiting' | 'ended' | 'failed'
