"""The Claude Agent SDK: `query(…)` or `client.receive_response()`. With `include_partial_messages` it streams words, else whole blocks."""
from __future__ import annotations

import json
from typing import Any, AsyncIterable, AsyncIterator, Iterable, Iterator

from ..messages import iterate
from ..updates import Update, given
from .anthropic import MessageReader
from .response import Response, field


async def from_claude_agent_sdk(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Update]:
    reader = SessionReader()
    async for message in iterate(stream):
        for update in reader.read(message):
            yield update


class SessionReader:
    def __init__(self) -> None:
        self._response = Response()
        self._events = MessageReader(self._response)
        self._is_partial = False
        self._names: dict[str, str] = {}

    def read(self, message: Any) -> Iterator[Update]:
        blocks = field(message, "content")
        blocks = blocks if isinstance(blocks, list) else []
        if field(message, "event") is not None:
            self._is_partial = True
            yield from self._events.read(field(message, "event"))
        elif field(message, "is_error") and field(message, "subtype") is not None:
            raise RuntimeError(f"Claude Agent SDK: {field(message, 'result') or field(message, 'subtype')}")
        for block in blocks:
            yield from self._block(block)
        if blocks and not self._is_partial and field(message, "model") is not None:
            yield from self._response.close(response=given(model=field(message, "model")))

    def _block(self, block: Any) -> Iterator[Update]:
        if field(block, "tool_use_id") is not None:
            call_id = field(block, "tool_use_id")
            yield from self._response.result(call_id, self._names.get(call_id, ""), field(block, "content"), bool(field(block, "is_error")))
            return
        call_id = field(block, "id")
        if call_id is not None:
            self._names[call_id] = field(block, "name")
        if self._is_partial:
            return
        yield from self._response.flow("text", field(block, "text"))
        yield from self._response.flow("reasoning", field(block, "thinking"))
        if call_id is not None:
            yield from self._response.call(call_id, call_id, field(block, "name"))
            yield from self._response.arguments(call_id, json.dumps(field(block, "input")))
