"""Calls agents: creates tasks, streams them with an exact resume, sends, cancels and answers."""
from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import uuid
from dataclasses import dataclass
from typing import Any, AsyncGenerator, AsyncIterator, Literal
from urllib.parse import quote, urlencode

from .errors import RivuletError
from .http import Http, Stream, retry_after_of
from .updates import DeltaAccumulator, given

EventType = Literal[
    "turn.queued", "turn.started", "message.started", "message.delta", "message.replaced", "message.finished", "state.changed",
    "turn.waiting", "turn.resumed", "turn.joined", "turn.discarded", "child.started", "child.finished", "turn.finished", "custom",
    "snapshot", "caught_up", "end", "deleted",
]  # fmt: skip


@dataclass(frozen=True)
class Event:
    """An event of a task. With its cursor, a stream continues exactly behind it."""

    type: EventType | str
    data: dict[str, Any]
    cursor: str | None


@dataclass(frozen=True)
class Result:
    """A turn that has ended, and what it said."""

    task: str
    status: str
    text: str
    messages: list[dict[str, Any]]


class Client:
    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        base = url or os.environ.get("RIVULET_URL", "http://127.0.0.1:4000")
        self._http = Http(base, key or os.environ.get("RIVULET_KEY"), threads=16, retries=8)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    async def create(self, agent: str, input: Any = None, **more: Any) -> dict[str, Any]:
        """Creates a task, and returns `task` and `turn`. It is created once, also if the call has to be repeated."""
        return await self._post("/v1/tasks", {"agent": agent, **given(input=input), **more})

    async def run(self, agent: str, input: Any = None, **more: Any) -> Result:
        """Creates a task and waits for the end of its turn."""
        created = await self.create(agent, input, **more)
        return await self.wait(created["task"]["id"])

    async def wait(self, task: str) -> Result:
        async for _ in self.stream(task):
            pass
        found, messages = await asyncio.gather(self.task(task), self.messages(task))
        said = [message for message in messages if message["author"] == "agent"]
        text = "".join(message["content"]["text"] for message in said if message["content"]["type"] == "text")
        return Result(task, found["task"]["status"], text, said)

    async def task(self, task: str) -> dict[str, Any]:
        return await self._http.json("GET", f"/v1/tasks/{task}")

    async def messages(self, task: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        path = f"/v1/tasks/{task}/messages"
        page = await self._http.json("GET", path)
        while True:
            found.extend(page["data"])
            if page["nextCursor"] is None:
                return found
            page = await self._http.json("GET", f"{path}?after={page['nextCursor']}")

    async def stream(self, task: str, after: str | None = None) -> AsyncIterator[Event]:
        """The events of a task until it has ended. A connection that breaks is opened again, exactly behind the last event."""
        async with contextlib.aclosing(self._events(f"/v1/tasks/{task}/events", after)) as events:
            async for event in events:
                yield event
                if event.type in ("end", "deleted"):
                    return

    async def feed(self, after: str | None = None, **filters: str) -> AsyncIterator[Event]:
        """The changes of all tasks, for ever."""
        async with contextlib.aclosing(self._events("/v1/feed" + (f"?{urlencode(filters)}" if filters else ""), after)) as events:
            async for event in events:
                if event.type != "open":
                    yield event

    async def send(self, task: str, input: Any, **more: Any) -> dict[str, Any]:
        return (await self._post(f"/v1/tasks/{task}/turns", {"input": input, **more}))["turn"]

    async def cancel(self, task: str, reason: str | None = None) -> dict[str, Any]:
        return (await self._post(f"/v1/tasks/{task}/cancel", given(reason=reason)))["task"]

    async def answer(self, task: str, wait: str, action: str = "accept", **more: Any) -> dict[str, Any]:
        return (await self._post(f"/v1/tasks/{task}/waits/{wait}/answer", {"action": action, **more}))["wait"]

    async def signal(self, task: str, name: str, data: Any = None) -> dict[str, Any]:
        return await self._post(f"/v1/tasks/{task}/signals", {"name": name, "data": data})

    async def upload(self, content: bytes, name: str | None = None, mime_type: str = "application/octet-stream") -> dict[str, Any]:
        headers = {"content-type": mime_type, "idempotency-key": str(uuid.uuid4())}
        if name is not None:
            headers["x-filename"] = f"UTF-8''{quote(name, safe='')}"
        reply = await self._http.request("POST", "/v1/files", content, headers, 300)
        return json.loads(reply[2])["file"]

    async def download(self, file: str) -> bytes:
        return (await self._http.request("GET", f"/v1/files/{file}", None, {}, 300))[2]

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._http.json("POST", path, body, {"idempotency-key": str(uuid.uuid4())})

    async def _events(self, path: str, after: str | None) -> AsyncGenerator[Event, None]:
        # Since the last event, and since the last connection: a quiet stream may break more often than a call is repeated.
        failures, refusals = 0, 0
        while not self._http.is_closed:
            headers = {"accept": "text/event-stream", **({"last-event-id": after} if after is not None else {})}
            pause = 0.0
            try:
                status, response = await self._http.stream(path, headers)
                refusals = 0
                with contextlib.closing(response):
                    if status == 204:
                        return
                    async for event in self._frames(response):
                        failures = 0
                        after = event.cursor if event.cursor is not None else after
                        yield event
            except (OSError, http.client.HTTPException, RivuletError) as error:
                refusals += 1
                if self._http.is_closed:
                    return
                if self._http.is_final(error, refusals):
                    raise
                pause = retry_after_of(error)
            failures += 1
            await asyncio.sleep(max(min(2, 0.05 * 2**failures), pause))

    async def _frames(self, response: Stream) -> AsyncIterator[Event]:
        kind, data, cursor = "message", "", None
        while True:
            line = await response.read_line()
            if not line:
                return
            name, _, value = line.decode().rstrip("\r\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = value
            elif name == "id":
                cursor = value
            elif name == "" and data:
                yield Event(kind, json.loads(data), cursor)
                kind, data, cursor = "message", "", None


def text_of(events: list[Event]) -> str:
    """The text of all messages of agents, folded from events without a snapshot."""
    found: dict[int, DeltaAccumulator] = {}
    for event in events:
        index = event.data.get("index", -1)
        if event.type == "message.started" and event.data.get("author") == "agent":
            found[index] = DeltaAccumulator(event.data["content"])
        elif event.type == "message.replaced":
            found[index] = DeltaAccumulator(event.data["content"])
        elif event.type == "message.delta" and index in found:
            found[index].add(event.data["delta"])
    return "".join(message.settle().get("text", "") for _, message in sorted(found.items()))
