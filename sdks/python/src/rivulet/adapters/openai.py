"""The OpenAI SDK: streams of the Responses API and of Chat Completions."""
from __future__ import annotations

from typing import Any, AsyncIterable, AsyncIterator, Iterable, Iterator

from ..messages import iterate
from ..updates import Update, given
from .response import Response, field, usage_of

flows = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
}
stop_reasons = {"stop": "stop", "tool_calls": "tool_use", "function_call": "tool_use", "length": "length", "content_filter": "content_filter"}


async def from_openai(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Update]:
    """`client.responses.create(…, stream=True)`, or `client.chat.completions.create(…, stream=True)`."""
    reader = ResponsesReader()
    chat = ChatReader()
    async for event in iterate(stream):
        for update in chat.read(event) if field(event, "type") is None else reader.read(event):
            yield update
    for update in chat.end():
        yield update


class ResponsesReader:
    """Events of the Responses API. `openai_agents` uses it, too."""

    def __init__(self, response: Response | None = None) -> None:
        self._response = response or Response()
        self._has_calls = False

    def read(self, event: Any) -> Iterator[Update]:
        kind = field(event, "type")
        item = field(event, "item")
        if kind in flows:
            yield from self._response.flow(flows[kind], field(event, "delta"))
        elif kind == "response.output_item.added" and field(item, "type") == "function_call":
            self._has_calls = True
            yield from self._response.call(field(item, "id") or field(item, "call_id"), field(item, "call_id"), field(item, "name"))
        elif kind == "response.function_call_arguments.delta":
            yield from self._response.arguments(field(event, "item_id"), field(event, "delta"))
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._end(field(event, "response"))
        elif kind in ("response.failed", "error"):
            raise RuntimeError(f"OpenAI: {field(event, 'response', 'error', 'message') or field(event, 'message')}")

    def _end(self, response: Any) -> Iterator[Update]:
        used = field(response, "usage")
        usage = usage_of(
            inputTokens=field(used, "input_tokens"),
            outputTokens=field(used, "output_tokens"),
            totalTokens=field(used, "total_tokens"),
            cacheReadTokens=field(used, "input_tokens_details", "cached_tokens"),
            reasoningTokens=field(used, "output_tokens_details", "reasoning_tokens"),
        )
        reason = field(response, "incomplete_details", "reason")
        stop = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(reason, "tool_use" if self._has_calls else "stop")
        self._has_calls = False
        about = given(id=field(response, "id"), model=field(response, "model"))
        yield from self._response.close(usage=usage, response=about, stopReason=stop)


class ChatReader:
    def __init__(self) -> None:
        self._response = Response()
        self._about: dict[str, Any] = {}
        self._usage: dict[str, float] | None = None
        self._stop: str | None = None

    def read(self, chunk: Any) -> Iterator[Update]:
        self._about = given(id=field(chunk, "id"), model=field(chunk, "model")) or self._about
        used = field(chunk, "usage")
        self._usage = self._usage if used is None else usage_of(
            inputTokens=field(used, "prompt_tokens"),
            outputTokens=field(used, "completion_tokens"),
            totalTokens=field(used, "total_tokens"),
            cacheReadTokens=field(used, "prompt_tokens_details", "cached_tokens"),
            reasoningTokens=field(used, "completion_tokens_details", "reasoning_tokens"),
        )  # fmt: skip
        for choice in (field(chunk, "choices") or [])[:1]:
            addition = field(choice, "delta")
            yield from self._response.flow("reasoning", field(addition, "reasoning_content") or field(addition, "reasoning"))
            yield from self._response.flow("text", field(addition, "content") or field(addition, "refusal"))
            for call in field(addition, "tool_calls") or []:
                key = ("call", field(call, "index"))
                yield from self._response.call(key, field(call, "id"), field(call, "function", "name"))
                yield from self._response.arguments(key, field(call, "function", "arguments"))
            reason = field(choice, "finish_reason")
            self._stop = stop_reasons.get(reason, "other") if reason else self._stop

    def end(self) -> Iterator[Update]:
        """The usage comes behind the last choice."""
        yield from self._response.close(usage=self._usage, response=self._about or None, stopReason=self._stop)
