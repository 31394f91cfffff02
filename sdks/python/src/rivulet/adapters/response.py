"""One response of a model as messages, for the adapters: text and reasoning flow one after the other, and tool calls stay open side by side."""
from __future__ import annotations

import itertools
from typing import Any, Iterator

from ..updates import Content, Update, delta, done, full, given, start, text, tool_request, tool_response

Numbers = Iterator[int]


def field(value: Any, *names: str) -> Any:
    """A field of an object, of a dictionary or of a field of it; None if one of them is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    return value


def usage_of(**tokens: Any) -> dict[str, float] | None:
    return {name: count for name, count in tokens.items() if isinstance(count, (int, float))} or None


class Response:
    def __init__(self, numbers: Numbers | None = None) -> None:
        self._numbers = itertools.count() if numbers is None else numbers
        self._flow: str | None = None
        self._open: dict[Any, int] = {}

    def flow(self, kind: str, piece: str | None) -> Iterator[Update]:
        """A piece of `text` or of `reasoning`."""
        if not piece:
            return
        if self._flow != kind:
            yield from self.close()
            self._flow = kind
            yield self._start(kind, text("", "markdown") if kind == "text" else {"type": "reasoning", "summary": [], "content": []})
        addition = piece if kind == "text" else {"type": "reasoning_content", "index": 0, "text": piece}
        yield delta(self._open[kind], addition)

    def call(self, key: Any, call_id: str | None, name: str | None) -> Iterator[Update]:
        """A tool call begins, unless it has begun."""
        if key in self._open:
            return
        if self._flow is not None:
            yield from self.close()
        yield self._start(key, tool_request(call_id or str(key), name or "", {}))

    def arguments(self, key: Any, piece: str | None) -> Iterator[Update]:
        if piece and key in self._open:
            yield delta(self._open[key], {"type": "tool_request", "text": piece})

    def result(self, call_id: str, name: str, content: Any, is_error: bool = False) -> Iterator[Update]:
        yield from self.close()
        yield full(next(self._numbers), tool_response(call_id, name, content, is_error))

    def close(self, **how: Any) -> Iterator[Update]:
        """Closes what is open. The last of it carries usage, response and stop reason."""
        indexes = list(self._open.values())
        self._open.clear()
        self._flow = None
        for index in indexes:
            yield done(index, **(given(**how) if index == indexes[-1] else {}))

    def _start(self, key: Any, content: Content) -> Update:
        self._open[key] = next(self._numbers)
        return start(self._open[key], content)
