"""The Anthropic SDK: a stream of `client.messages.create(…, stream=True)`, or of `client.messages.stream(…)`."""
from __future__ import annotations

from typing import Any, AsyncIterable, AsyncIterator, Iterable, Iterator

from ..messages import iterate
from ..updates import Update, given
from .response import Response, field, usage_of

stop_reasons = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_use", "max_tokens": "length", "refusal": "content_filter"}


async def from_anthropic(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Update]:
    reader = MessageReader()
    async for event in iterate(stream):
        for update in reader.read(event):
            yield update


class MessageReader:
    """Events of a streamed message. `claude_agent_sdk` uses it, too. What the SDK adds to them is passed over."""

    def __init__(self, response: Response | None = None) -> None:
        self._response = response or Response()
        self._usage: dict[str, float] = {}
        self._about: dict[str, Any] = {}
        self._stop: str | None = None

    def read(self, event: Any) -> Iterator[Update]:
        kind = field(event, "type")
        block = field(event, "content_block")
        addition = field(event, "delta")
        if kind == "message_start":
            message = field(event, "message")
            self._usage = self._read_usage(field(message, "usage"))
            self._about = given(id=field(message, "id"), model=field(message, "model"))
            self._stop = None
        elif kind == "content_block_start" and field(block, "type") == "tool_use":
            yield from self._response.call(field(event, "index"), field(block, "id"), field(block, "name"))
        elif kind == "content_block_start":
            yield from self._response.flow("text", field(block, "text"))
        elif kind == "content_block_delta":
            yield from self._response.flow("text", field(addition, "text"))
            yield from self._response.flow("reasoning", field(addition, "thinking"))
            yield from self._response.arguments(field(event, "index"), field(addition, "partial_json"))
        elif kind == "message_delta":
            self._usage.update(self._read_usage(field(event, "usage")))
            reason = field(addition, "stop_reason")
            self._stop = stop_reasons.get(reason, "other") if reason else self._stop
        elif kind == "message_stop":
            yield from self._response.close(usage=self._usage or None, response=self._about or None, stopReason=self._stop)
        elif kind == "error":
            raise RuntimeError(f"Anthropic: {field(event, 'error', 'message')}")

    def _read_usage(self, used: Any) -> dict[str, float]:
        found = usage_of(
            inputTokens=field(used, "input_tokens"),
            outputTokens=field(used, "output_tokens"),
            cacheReadTokens=field(used, "cache_read_input_tokens"),
            cacheWriteTokens=field(used, "cache_creation_input_tokens"),
        )
        return found or {}
