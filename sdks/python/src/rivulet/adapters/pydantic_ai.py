"""Pydantic AI: `agent.run_stream_events(…)`, or the events that an `event_stream_handler` gets."""
from __future__ import annotations

import itertools
import json
from typing import Any, AsyncIterable, AsyncIterator, Iterable, Iterator

from ..messages import iterate
from ..updates import Update
from .response import Response, field, usage_of

kinds = {"text": "text", "thinking": "reasoning"}


async def from_pydantic_ai(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Update]:
    reader = PartReader()
    async for event in iterate(stream):
        for update in reader.read(event):
            yield update
    for update in reader.end():
        yield update


class PartReader:
    def __init__(self) -> None:
        self._response = Response(itertools.count())
        self._kinds: dict[int, str] = {}
        self._usage: Any = None

    def read(self, event: Any) -> Iterator[Update]:
        kind = field(event, "event_kind")
        index = field(event, "index")
        if kind == "part_start":
            part = field(event, "part")
            self._kinds[index] = field(part, "part_kind")
            if field(part, "part_kind") == "tool-call":
                yield from self._response.call(index, field(part, "tool_call_id"), field(part, "tool_name"))
            yield from self._add(index, field(part, "content"), field(part, "args"))
        elif kind == "part_delta":
            addition = field(event, "delta")
            yield from self._add(index, field(addition, "content_delta"), field(addition, "args_delta"))
        elif kind == "function_tool_result":
            result = field(event, "result") or field(event, "part")
            is_retry = field(result, "part_kind") == "retry-prompt"
            yield from self._response.result(field(result, "tool_call_id"), field(result, "tool_name") or "", plain(field(result, "content")), is_retry)
        elif kind == "agent_run_result":
            used = field(event, "result", "usage")
            self._usage = used() if callable(used) else used

    def end(self) -> Iterator[Update]:
        usage = usage_of(
            inputTokens=field(self._usage, "input_tokens"),
            outputTokens=field(self._usage, "output_tokens"),
            cacheReadTokens=field(self._usage, "cache_read_tokens"),
            cacheWriteTokens=field(self._usage, "cache_write_tokens"),
        )
        yield from self._response.close(usage=usage)

    def _add(self, index: int, content: Any, arguments: Any) -> Iterator[Update]:
        kind = self._kinds.get(index, "")
        if kind in kinds:
            yield from self._response.flow(kinds[kind], content)
        elif arguments:
            yield from self._response.arguments(index, arguments if isinstance(arguments, str) else json.dumps(arguments))


def plain(value: Any) -> Any:
    """As JSON has it; anything else as its text."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return str(value)
