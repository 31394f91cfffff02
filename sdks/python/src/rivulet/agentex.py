"""
The words of Agentex for agents of Rivulet: an agent that is written against its ACP and its `adk` runs as a turn.

An event of Agentex is a turn here. `on_task_create` runs in the first turn of a task, before its event; `on_task_cancel` when the turn was canceled. What the
user says is a message already, so to create it again sends nothing.
"""
from __future__ import annotations

import asyncio
import contextvars
import inspect
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, AsyncIterable, Callable

from . import updates
from .agent import Agent
from .messages import Message, Places, iterate
from .turn import Turn
from .updates import Content, DeltaAccumulator, Update

__all__ = [
    "ACP", "DataContent", "DataDelta", "DeltaAccumulator", "MessageAuthor", "Params", "ReasoningContentDelta", "ReasoningSummaryDelta",
    "StreamTaskMessageDelta", "StreamTaskMessageDone", "StreamTaskMessageFull", "StreamTaskMessageStart", "TextContent", "TextDelta",
    "ToolRequestContent", "ToolRequestDelta", "ToolResponseContent", "ToolResponseDelta", "adk", "streaming_task_message_context",
]  # fmt: skip


class MessageAuthor(str, Enum):
    AGENT = "agent"
    USER = "user"


@dataclass
class TextContent:
    content: str
    author: str = MessageAuthor.AGENT
    format: str = "plain"

    def to_content(self) -> Content:
        return updates.text(self.content, self.format)


@dataclass
class DataContent:
    data: Any
    author: str = MessageAuthor.AGENT

    def to_content(self) -> Content:
        return {"type": "data", "data": self.data}


@dataclass
class ToolRequestContent:
    tool_call_id: str
    name: str
    arguments: Any
    author: str = MessageAuthor.AGENT

    def to_content(self) -> Content:
        return updates.tool_request(self.tool_call_id, self.name, self.arguments)


@dataclass
class ToolResponseContent:
    tool_call_id: str
    name: str
    content: Any
    author: str = MessageAuthor.AGENT

    def to_content(self) -> Content:
        return updates.tool_response(self.tool_call_id, self.name, self.content)


@dataclass
class TextDelta:
    text_delta: str

    def to_delta(self) -> updates.Delta:
        return {"type": "text", "text": self.text_delta}


@dataclass
class DataDelta:
    data_delta: str

    def to_delta(self) -> updates.Delta:
        return {"type": "data_json", "text": self.data_delta}


@dataclass
class ReasoningSummaryDelta:
    summary_delta: str
    summary_index: int = 0

    def to_delta(self) -> updates.Delta:
        return {"type": "reasoning_summary", "index": self.summary_index, "text": self.summary_delta}


@dataclass
class ReasoningContentDelta:
    content_delta: str
    content_index: int = 0

    def to_delta(self) -> updates.Delta:
        return {"type": "reasoning_content", "index": self.content_index, "text": self.content_delta}


@dataclass
class ToolRequestDelta:
    arguments_delta: str
    tool_call_id: str = ""
    name: str = ""

    def to_delta(self) -> updates.Delta:
        return {"type": "tool_request", "text": self.arguments_delta}


@dataclass
class ToolResponseDelta:
    content_delta: str
    tool_call_id: str = ""
    name: str = ""

    def to_delta(self) -> updates.Delta:
        return {"type": "tool_response", "text": self.content_delta}


@dataclass
class StreamTaskMessageStart:
    content: Any
    index: int = 0
    parent_task_message: Any = None

    def to_update(self) -> Update:
        return updates.start(self.index, self.content.to_content())


@dataclass
class StreamTaskMessageDelta:
    delta: Any
    index: int = 0
    parent_task_message: Any = None

    def to_update(self) -> Update:
        return updates.delta(self.index, self.delta.to_delta())


@dataclass
class StreamTaskMessageFull:
    content: Any
    index: int = 0
    parent_task_message: Any = None

    def to_update(self) -> Update:
        return updates.full(self.index, self.content.to_content())


@dataclass
class StreamTaskMessageDone:
    index: int = 0
    parent_task_message: Any = None

    def to_update(self) -> Update:
        return updates.done(self.index)


@dataclass
class Params:
    """What a handler gets: the task and the event, as Agentex names them, and the turn of Rivulet."""

    task: Any
    event: Any
    turn: Turn

    @property
    def content(self) -> Any:
        return self.event.content


Handler = Callable[[Params], Any]
current_turn: contextvars.ContextVar[Turn] = contextvars.ContextVar("current_turn")


class ACP:
    """`acp = ACP("desk")`, handlers by its decorators, and `run(acp.agent)`."""

    def __init__(self, name: str, description: str = "") -> None:
        self.agent = Agent(name, self._run, {"description": description})
        self._handlers: dict[str, Handler] = {}

    def on_task_create(self, handler: Handler) -> Handler:
        return self._on("create", handler)

    def on_event_send(self, handler: Handler) -> Handler:
        return self._on("event", handler)

    def on_task_cancel(self, handler: Handler) -> Handler:
        return self._on("cancel", handler)

    on_task_event_send = on_event_send
    # A sync handler yields updates.
    on_message_send = on_event_send

    def _on(self, name: str, handler: Handler) -> Handler:
        self._handlers[name] = handler
        return handler

    async def _run(self, turn: Turn) -> None:
        current_turn.set(turn)
        said = TextContent(turn.text, MessageAuthor.USER)
        params = Params(SimpleNamespace(id=turn.task["id"], params=turn.params), SimpleNamespace(content=said), turn)
        try:
            if turn.number == 1:
                await self._call("create", params)
            await self._call("event", params)
        except asyncio.CancelledError:
            if turn.over == "canceled":
                await self._call("cancel", params)
            raise

    async def _call(self, name: str, params: Params) -> None:
        handler = self._handlers.get(name)
        running = handler(params) if handler else None
        if inspect.isasyncgen(running):
            places = Places(params.turn)
            async for event in iterate(running):
                await places.write(event.to_update())
            await places.close()
        elif inspect.isawaitable(running):
            await running


class streaming_task_message_context:
    """A message that is streamed by hand. Its end sends the done."""

    def __init__(self, task_id: str | None = None, initial_content: Any = None) -> None:
        self._scope = current_turn.get().message(initial_content.to_content())
        self.task_message: Any = None
        self._message: Message | None = None

    async def __aenter__(self) -> streaming_task_message_context:
        self._message = await self._scope.__aenter__()
        self.task_message = SimpleNamespace(index=self._message.index)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._scope.__aexit__(*error)

    async def stream_update(self, update: Any) -> None:
        assert self._message is not None
        if isinstance(update, StreamTaskMessageDelta):
            await self._message.append(update.delta.to_delta())
        elif isinstance(update, StreamTaskMessageFull):
            await self._message.replace(update.content.to_content())
        elif isinstance(update, StreamTaskMessageDone):
            await self._message.finish()

    async def close(self) -> None:
        assert self._message is not None
        if self._message.is_open:
            await self._message.finish()


class _Messages:
    async def create(self, task_id: str | None = None, content: Any = None) -> None:
        if content.author != MessageAuthor.USER:
            await current_turn.get().send(content.to_content())

    async def list(self, task_id: str | None = None) -> list[dict[str, Any]]:
        return await current_turn.get().history()


class _Streaming:
    streaming_task_message_context = streaming_task_message_context

    async def auto_send(self, events: AsyncIterable[Any]) -> Any:
        """A whole stream of Agentex' updates; returns what it has become."""

        async def converted() -> Any:
            async for event in iterate(events):
                yield event.to_update()

        return await current_turn.get().auto_send(converted())


class adk:
    messages = _Messages()
    streaming = _Streaming()
