"""LangGraph: `graph.astream(…, stream_mode="messages")`, or a list of modes, of which `messages` and `custom` are sent."""
from __future__ import annotations

import itertools
from typing import Any, AsyncIterable, AsyncIterator, Iterable, Iterator

from ..messages import iterate
from ..updates import Update, custom, given
from .response import Response, field, usage_of

stop_reasons = {"stop": "stop", "end_turn": "stop", "STOP": "stop", "tool_calls": "tool_use", "tool_use": "tool_use", "length": "length", "max_tokens": "length"}


async def from_langgraph(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Update]:
    reader = MessagesReader()
    async for item in iterate(stream):
        first, second = item[-2:]
        # With several modes an item is named by its mode.
        mode, value = (first, second) if isinstance(first, str) else ("messages", item)
        if mode == "custom":
            yield custom("langgraph", value)
        elif mode == "messages":
            for update in reader.read(value[0]):
                yield update
    for update in reader.end():
        yield update


class MessagesReader:
    """Nodes that run side by side stream messages side by side, each with an id of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._open: dict[Any, tuple[Response, dict[str, Any]]] = {}

    def read(self, message: Any) -> Iterator[Update]:
        kind = field(message, "type")
        if kind == "tool":
            yield from self.end()
            is_error = field(message, "status") == "error"
            response = Response(self._numbers)
            yield from response.result(field(message, "tool_call_id"), field(message, "name") or "", field(message, "content"), is_error)
        elif kind in ("ai", "AIMessageChunk"):
            response, how = self._open.setdefault(field(message, "id"), (Response(self._numbers), {}))
            yield from self._content(response, field(message, "content"))
            for call in field(message, "tool_call_chunks") or []:
                key = ("call", field(call, "index"))
                yield from response.call(key, field(call, "id"), field(call, "name"))
                yield from response.arguments(key, field(call, "args"))
            how.update(self._end_of(message))

    def end(self) -> Iterator[Update]:
        for response, how in self._open.values():
            yield from response.close(**how)
        self._open.clear()

    def _content(self, response: Response, content: Any) -> Iterator[Update]:
        for block in [content] if isinstance(content, str) else content or []:
            yield from response.flow("text", block if isinstance(block, str) else field(block, "text"))
            if not isinstance(block, str):
                yield from response.flow("reasoning", field(block, "thinking") or field(block, "reasoning"))

    def _end_of(self, message: Any) -> dict[str, Any]:
        used = field(message, "usage_metadata")
        about = field(message, "response_metadata")
        reason = field(about, "finish_reason") or field(about, "stop_reason")
        usage = usage_of(
            inputTokens=field(used, "input_tokens"),
            outputTokens=field(used, "output_tokens"),
            totalTokens=field(used, "total_tokens"),
            cacheReadTokens=field(used, "input_token_details", "cache_read"),
            reasoningTokens=field(used, "output_token_details", "reasoning"),
        )
        model = field(about, "model_name") or field(about, "model")
        response = given(id=field(message, "id"), model=model) if model else None
        return given(usage=usage, response=response, stopReason=stop_reasons.get(reason, "other") if reason else None)
