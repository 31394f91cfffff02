"""The output of an agent, in its own numbering: index 0 is the first message of its turn, or of its stream."""
from __future__ import annotations

import json
from typing import Any

Update = dict[str, Any]
Content = dict[str, Any]
Delta = dict[str, Any]


def text(value: str, format: str = "plain") -> Content:
    return {"type": "text", "text": value, "format": format}


def tool_request(call_id: str, name: str, arguments: Any) -> Content:
    return {"type": "tool_request", "callId": call_id, "name": name, "arguments": arguments}


def tool_response(call_id: str, name: str, content: Any, is_error: bool = False) -> Content:
    return {"type": "tool_response", "callId": call_id, "name": name, "content": content, "isError": is_error}


def start(index: int, content: str | Content, metadata: dict[str, Any] | None = None, author: str | None = None) -> Update:
    """Opens a message with a content that deltas extend."""
    return {"type": "start", "index": index, "content": as_content(content), **given(metadata=metadata, author=author)}


def delta(index: int, addition: str | Delta) -> Update:
    """Extends a message. A string is a text delta."""
    return {"type": "delta", "index": index, "delta": {"type": "text", "text": addition} if isinstance(addition, str) else addition}


def full(index: int, whole: str | Content, metadata: dict[str, Any] | None = None) -> Update:
    """Replaces the whole message at the index and closes it. A string is plain text."""
    return {"type": "full", "index": index, "content": as_content(whole), **given(metadata=metadata)}


def done(index: int, **how: Any) -> Update:
    """Closes a message; with `usage`, `response`, `status`, `stopReason` and `error`."""
    return {"type": "done", "index": index, **how}


def custom(name: str, data: Any) -> Update:
    """An event that the agent defines. It never changes a message."""
    return {"type": "custom", "name": name, "data": data}


def as_content(value: str | Content) -> Content:
    return text(value) if isinstance(value, str) else value


def given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def empty_content(delta_type: str) -> Content:
    """The content of a message whose first update is a delta of this type."""
    if delta_type in ("text", "metadata"):
        return text("")
    if delta_type.startswith("reasoning"):
        return {"type": "reasoning", "summary": [], "content": []}
    if delta_type in ("data", "data_json"):
        return {"type": "data", "data": None}
    if delta_type == "tool_request":
        return tool_request("", "", {})
    if delta_type == "tool_response":
        return tool_response("", "", None)
    return {"type": "media", "mimeType": "application/octet-stream"}


class DeltaAccumulator:
    """One message: its content as the deltas so far make it. JSON in pieces is read when the message is closed."""

    def __init__(self, content: Content, metadata: dict[str, Any] | None = None, author: str = "agent") -> None:
        self.content: Content = dict(content)
        self.metadata = dict(metadata or {})
        self.author = author
        self.status = "streaming"
        self.how: dict[str, Any] = {}
        self._text: dict[Any, list[str]] = {}

    def add(self, addition: Delta) -> None:
        kind = addition["type"]
        if kind == "data":
            self._text.clear()
            self.content["content" if self.content["type"] == "tool_response" else "data"] = addition["value"]
        elif kind == "metadata":
            self.metadata.update(addition["metadata"])
        elif kind != "media":
            self._text.setdefault((kind, addition.get("index", 0)), []).append(addition["text"])

    def close(self, **how: Any) -> None:
        self.status = how.get("status", "complete")
        self.how = {name: value for name, value in how.items() if name != "status"}
        self.settle()

    def settle(self) -> Content:
        """The content with the text of its deltas."""
        for (kind, index), pieces in self._text.items():
            joined = "".join(pieces)
            if kind == "text":
                self.content["text"] = self.content.get("text", "") + joined
            elif kind.startswith("reasoning"):
                parts = self.content["summary" if kind == "reasoning_summary" else "content"]
                parts.extend([""] * (index + 1 - len(parts)))
                parts[index] += joined
            else:
                raw = self.content.get("raw", "") + joined
                field = {"tool_request": "arguments", "tool_response": "content"}.get(kind, "data")
                try:
                    self.content[field] = json.loads(raw)
                    self.content.pop("raw", None)
                except ValueError:
                    self.content["raw"] = raw
        self._text.clear()
        return self.content

    def message(self) -> dict[str, Any]:
        return {"author": self.author, "content": self.settle(), "metadata": self.metadata, "status": self.status, **self.how}
