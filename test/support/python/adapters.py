"""
The adapters for agent frameworks. Their streams are written as the frameworks document them; those of OpenAI's and Anthropic's SDK also come from the SDKs
themselves, where they are installed, which read them from a server that plays the provider.
"""
import asyncio
import contextlib
import http.server
import importlib.util
import json
import logging
import threading
import unittest
from types import SimpleNamespace

from rivulet import agent, test_turn
from rivulet.adapters.anthropic import from_anthropic
from rivulet.adapters.claude_agent_sdk import from_claude_agent_sdk
from rivulet.adapters.langgraph import from_langgraph
from rivulet.adapters.openai import from_openai
from rivulet.adapters.openai_agents import from_openai_agents
from rivulet.adapters.pydantic_ai import from_pydantic_ai

WORDS = ["Let me ", "see."]


def objects(value):
    """The same stream with objects in place of dictionaries, as SDKs have them."""
    return json.loads(json.dumps(value), object_hook=lambda found: SimpleNamespace(**found))


logging.disable()


async def run(adapted):
    @agent("adapted")
    async def adapted_agent(turn):
        await turn.auto_send(adapted)

    return await test_turn(adapted_agent)


def shown(turn):
    """Each message as its type and what it says."""
    found = []
    for message in turn.messages:
        content = message["content"]
        kind = content["type"]
        said = {
            "text": lambda: content["text"],
            "reasoning": lambda: "".join(content["content"]),
            "tool_request": lambda: (content["callId"], content["name"], content["arguments"]),
            "tool_response": lambda: (content["callId"], content["name"], content["content"], content["isError"]),
        }[kind]()
        found.append((kind, said))
    return found


CALL = ("tool_request", ("call_1", "look", {"at": "ä"}))

RESPONSES = [
    {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}},
    {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "Hm."},
    *[{"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": word} for word in WORDS],
    {"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look"}},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": '{"at":'},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": '"ä"}'},
    {
        "type": "response.completed",
        "response": {
            "id": "resp_1",
            "model": "m",
            "usage": {
                **{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
                **{"input_tokens_details": {"cached_tokens": 1}, "output_tokens_details": {"reasoning_tokens": 2}},
            },
        },
    },
]
RESPONSES_USAGE = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadTokens": 1, "reasoningTokens": 2}


def chunk(delta=None, finish=None, **more):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def tool_chunk(**function):
    return {"index": 0, **function}


CHAT = [
    chunk({"role": "assistant", "content": ""}),
    *[chunk({"content": word}) for word in WORDS],
    chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"at":'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"ä"}'}}]}),
    chunk({}, "tool_calls"),
    chunk(usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}),
]

ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            **{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None},
            "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    *[{"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": word}} for word in WORDS],
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"at":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"ä"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
ANTHROPIC_USAGE = {"inputTokens": 3, "outputTokens": 4, "cacheReadTokens": 2}


class Checks(unittest.IsolatedAsyncioTestCase):
    async def expect(self, adapted, expected, **how):
        turn = await run(adapted)
        self.assertEqual((turn.status, turn.error, shown(turn)), ("completed", None, expected))
        self.assertTrue(all(message["status"] == "complete" for message in turn.messages))
        last = turn.messages[-1]
        self.assertEqual({name: last.get(name) for name in how}, how)


class Adapters(Checks):
    async def test_openai_responses(self):
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL]
        for stream in (RESPONSES, objects(RESPONSES)):
            await self.expect(from_openai(stream), expected, usage=RESPONSES_USAGE, stopReason="tool_use", response={"id": "resp_1", "model": "m"})

    async def test_openai_chat(self):
        usage = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
        for stream in (CHAT, objects(CHAT)):
            await self.expect(from_openai(stream), [("text", "Let me see."), CALL], usage=usage, stopReason="tool_use")

    async def test_two_calls_side_by_side(self):
        def call(index, **function):
            return {"index": index, "id": f"call_{index}", "type": "function", "function": function}

        stream = [
            chunk({"tool_calls": [call(0, name="a", arguments='{"n":'), call(1, name="b", arguments="{")]}),
            chunk({"tool_calls": [call(1, arguments="}"), call(0, arguments="1}")]}),
            chunk({}, "tool_calls"),
        ]
        await self.expect(from_openai(stream), [("tool_request", ("call_0", "a", {"n": 1})), ("tool_request", ("call_1", "b", {}))])

    async def test_a_failure_of_the_provider_fails_the_turn(self):
        for adapted in (
            from_openai([*RESPONSES[:4], {"type": "response.failed", "response": {"error": {"message": "no luck"}}}]),
            from_anthropic([*ANTHROPIC[:6], {"type": "error", "error": {"type": "overloaded_error", "message": "no luck"}}]),
            from_claude_agent_sdk([{"subtype": "error_during_execution", "is_error": True, "result": "no luck"}]),
        ):
            turn = await run(adapted)
            self.assertEqual((turn.status, turn.error["code"]), ("failed", "agent_error"))

    async def test_anthropic(self):
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL]
        for stream in (ANTHROPIC, objects(ANTHROPIC)):
            await self.expect(from_anthropic(stream), expected, usage=ANTHROPIC_USAGE, stopReason="tool_use", response={"id": "msg_1", "model": "m"})

    async def test_openai_agents(self):
        output = {"type": "run_item_stream_event", "name": "tool_output", "item": {"raw_item": {"call_id": "call_1"}, "output": "seen"}}
        answer = [
            {"type": "response.output_text.delta", "delta": "A bird."},
            {"type": "response.completed", "response": {"id": "resp_2", "model": "m", "usage": {"input_tokens": 9}}},
        ]
        raw = [[{"type": "raw_response_event", "data": event} for event in events] for events in (RESPONSES, answer)]
        stream = [{"type": "agent_updated_stream_event", "new_agent": {}}, *raw[0], output, *raw[1]]
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL, ("tool_response", ("call_1", "look", "seen", False)), ("text", "A bird.")]
        await self.expect(from_openai_agents(objects(stream)), expected, usage={"inputTokens": 9}, stopReason="stop")

    async def test_pydantic_ai(self):
        stream = [
            {"event_kind": "part_start", "index": 0, "part": {"part_kind": "thinking", "content": "Hm."}},
            {"event_kind": "part_start", "index": 1, "part": {"part_kind": "text", "content": WORDS[0]}},
            {"event_kind": "final_result", "tool_name": None},
            {"event_kind": "part_delta", "index": 1, "delta": {"part_delta_kind": "text", "content_delta": WORDS[1]}},
            {"event_kind": "part_start", "index": 2, "part": {"part_kind": "tool-call", "tool_name": "look", "args": '{"at":', "tool_call_id": "call_1"}},
            {"event_kind": "part_delta", "index": 2, "delta": {"part_delta_kind": "tool_call", "args_delta": '"ä"}'}},
            {"event_kind": "function_tool_call", "part": {"part_kind": "tool-call", "tool_name": "look", "tool_call_id": "call_1"}},
            {
                "event_kind": "function_tool_result",
                "result": {"part_kind": "tool-return", "tool_name": "look", "tool_call_id": "call_1", "content": {"seen": 1}},
            },
            {"event_kind": "part_start", "index": 0, "part": {"part_kind": "text", "content": "A bird."}},
            {"event_kind": "agent_run_result", "result": {"usage": {"input_tokens": 9, "output_tokens": 8}}},
        ]
        result = ("tool_response", ("call_1", "look", {"seen": 1}, False))
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL, result, ("text", "A bird.")]
        await self.expect(from_pydantic_ai(stream), expected, usage={"inputTokens": 9, "outputTokens": 8})

    async def test_langgraph(self):
        def said(number, content, calls=(), **more):
            chunks = [dict(zip(("index", "id", "name", "args"), call)) for call in calls]
            return {"type": "AIMessageChunk", "id": f"run-{number}", "content": content, "tool_call_chunks": chunks, **more}

        messages = [
            said(1, [{"type": "thinking", "thinking": "Hm."}]),
            said(1, WORDS[0]),
            said(1, [{"type": "text", "text": WORDS[1]}]),
            said(1, "", [(0, "call_1", "look", '{"at":')]),
            said(1, "", [(0, None, None, '"ä"}')], usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}),
            {"type": "tool", "tool_call_id": "call_1", "name": "look", "content": "seen", "status": "success"},
            said(2, "A bird.", response_metadata={"finish_reason": "stop", "model_name": "m"}),
        ]
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL, ("tool_response", ("call_1", "look", "seen", False)), ("text", "A bird.")]
        how = {"stopReason": "stop", "response": {"id": "run-2", "model": "m"}}
        await self.expect(from_langgraph([(message, {"langgraph_node": "model"}) for message in messages]), expected, **how)
        named = [("messages", (message, {})) for message in objects(messages)]
        await self.expect(from_langgraph([("updates", {"node": {}}), ("custom", {"n": 1}), *named]), expected, **how)

    async def test_langgraph_with_nodes_side_by_side(self):
        pieces = [(1, "one "), (2, "uno "), (1, "two"), (2, "dos")]
        stream = [({"type": "AIMessageChunk", "id": node, "content": text, "tool_call_chunks": []}, {}) for node, text in pieces]
        await self.expect(from_langgraph(stream), [("text", "one two"), ("text", "uno dos")])

    async def test_claude_agent_sdk(self):
        call = {"id": "call_1", "name": "look", "input": {"at": "ä"}}
        whole = {"content": [{"thinking": "Hm.", "signature": "s"}, {"text": "Let me see."}, call], "model": "m"}
        result = {"content": [{"tool_use_id": "call_1", "content": "seen", "is_error": None}]}
        answer = {"content": [{"text": "A bird."}], "model": "m"}
        end = {"subtype": "success", "is_error": False, "result": "A bird.", "usage": {}}
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL, ("tool_response", ("call_1", "look", "seen", False)), ("text", "A bird.")]
        stream = [{"subtype": "init", "data": {}}, whole, result, answer, end]
        await self.expect(from_claude_agent_sdk(stream), expected)
        partial = [{"event": event, "session_id": "s"} for event in ANTHROPIC]
        answered = [
            {"event": {"type": "message_start", "message": {"id": "msg_2", "model": "m"}}},
            {"event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "A bird."}}},
            {"event": {"type": "message_stop"}},
        ]
        await self.expect(from_claude_agent_sdk([*partial, whole, result, *answered, answer, end]), expected)


@contextlib.contextmanager
def provider(events, has_names):
    """A server that replies to every request with these events."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                name = f"event: {event['type']}\n" if has_names else ""
                self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            if not has_names:
                self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"{package} is not installed")


class Packages(Checks):
    @needs("openai")
    async def test_openai_responses(self):
        import openai

        events = [{"sequence_number": n, **event} for n, event in enumerate(RESPONSES)]
        with provider(events, True) as url:
            client = openai.AsyncOpenAI(base_url=url, api_key="none")
            stream = await client.responses.create(model="m", input="go", stream=True)
            expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL]
            await self.expect(from_openai(stream), expected, usage=RESPONSES_USAGE, stopReason="tool_use", response={"id": "resp_1", "model": "m"})

    @needs("openai")
    async def test_openai_chat(self):
        import openai

        with provider(CHAT, False) as url:
            client = openai.AsyncOpenAI(base_url=url, api_key="none")
            stream = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}], stream=True)
            await self.expect(from_openai(stream), [("text", "Let me see."), CALL], stopReason="tool_use")

    @needs("anthropic")
    async def test_anthropic(self):
        import anthropic

        request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
        expected = [("reasoning", "Hm."), ("text", "Let me see."), CALL]
        with provider(ANTHROPIC, True) as url:
            client = anthropic.AsyncAnthropic(base_url=url, api_key="none")
            stream = await client.messages.create(**request, stream=True)
            await self.expect(from_anthropic(stream), expected, usage=ANTHROPIC_USAGE, stopReason="tool_use")
            async with client.messages.stream(**request) as helper:
                await self.expect(from_anthropic(helper), expected, usage=ANTHROPIC_USAGE, stopReason="tool_use")


unittest.main()
