"""The OpenAI Agents SDK: `Runner.run_streamed(…).stream_events()`."""
from __future__ import annotations

from typing import Any, AsyncIterable, AsyncIterator, Iterable

from ..messages import iterate
from ..updates import Update
from .openai import ResponsesReader
from .response import Response, field


async def from_openai_agents(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Update]:
    response = Response()
    reader = ResponsesReader(response)
    names: dict[str, str] = {}
    async for event in iterate(stream):
        if field(event, "type") == "raw_response_event":
            called = field(event, "data", "item")
            if field(called, "type") == "function_call":
                names[field(called, "call_id")] = field(called, "name")
            for update in reader.read(field(event, "data")):
                yield update
        elif field(event, "name") == "tool_output":
            item = field(event, "item")
            call_id = field(item, "raw_item", "call_id") or ""
            for update in response.result(call_id, names.get(call_id, ""), field(item, "output")):
                yield update
    for update in response.close():
        yield update
