/** A turn with every type of content: streamed, whole, and replaced; one tool call that succeeds, and one that fails. */
import { done, extend, full, repeat, rest, type Step, say, start } from '../support/agents/scripts.ts'

/** @param failedCall the id of the call that fails; the first call is `c1` */
export function everyContent(failedCall: string): Step[] {
  return [
    extend(0, { type: 'reasoning_summary', index: 0, text: 'Hm ' }),
    rest(5),
    extend(0, { type: 'reasoning_content', index: 0, text: 'so.' }),
    done(0),
    repeat(5, say(1, 'word '), rest(5)),
    done(1),
    start(2, { type: 'tool_request', callId: 'c1', name: 'weather', arguments: {} }),
    extend(2, { type: 'tool_request', text: '{"city":' }),
    rest(5),
    extend(2, { type: 'tool_request', text: '"Oslo"}' }),
    done(2),
    start(3, { type: 'tool_response', callId: 'c1', name: 'weather', content: null, isError: false }),
    rest(5),
    full(3, { type: 'tool_response', callId: 'c1', name: 'weather', content: { rain: true }, isError: false }),
    full(4, { type: 'tool_request', callId: failedCall, name: 'fail', arguments: {} }),
    full(5, { type: 'tool_response', callId: failedCall, name: 'fail', content: 'no', isError: true }),
    full(6, { type: 'data', data: { whole: true } }),
    full(7, { type: 'media', mimeType: 'image/png', data: 'AAEC' }),
    say(8, 'A draft'),
    rest(5),
    full(8, { type: 'text', text: 'The final word.', format: 'plain' }),
    say(9, 'Bye.'),
  ]
}
