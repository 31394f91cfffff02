"""
One turn, as its agent sees it: what came in, the ways to say something, steps that are not run twice, waits and children.

The handler runs from the top again when the turn was parked for a wait, or when an attempt failed: steps return what they have returned before.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Protocol, TypeVar
from urllib.parse import quote

from .errors import RivuletError, failure_of
from .updates import Content, Delta, Update, as_content, custom, delta, done, full, given, start
from .writer import TurnWriter

T = TypeVar("T")
day_ms = 86_400_000


class Calls(Protocol):
    """The calls of a worker that a turn makes; `rivulet.testing` plays them."""

    async def post(self, call: str, body: dict[str, Any]) -> dict[str, Any]: ...
    async def get(self, path: str, turn: dict[str, Any]) -> dict[str, Any]: ...
    async def read_file(self, file: str, turn: dict[str, Any]) -> bytes: ...
    async def store_file(self, content: bytes, headers: dict[str, str], turn: dict[str, Any]) -> dict[str, Any]: ...


@dataclass
class Sent:
    """What a stream of updates has become."""

    messages: list[dict[str, Any]]
    text: str
    tool_calls: list[Content]


@dataclass
class Answer:
    action: str
    content: Any = None
    comment: str | None = None
    by: str | None = None


@dataclass
class Child:
    """A child of a turn. Its status is `queued` if the turn does not wait for it."""

    task: str
    status: str
    text: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, str] | None = None


@dataclass
class _Step:
    name: str
    around: _Step | None
    indexes: list[int] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, float] = field(default_factory=dict)


current_step: contextvars.ContextVar[_Step | None] = contextvars.ContextVar("current_step", default=None)


class Message:
    """A message that is written by hand. Leaving its scope closes it: complete, or failed if the scope raised."""

    def __init__(self, turn: Turn, index: int, content: Content) -> None:
        self.index = index
        self._turn = turn
        self._kind = content["type"]

    async def append(self, addition: str | Delta) -> None:
        """Adds text, or any delta that fits the content."""
        kinds = {"reasoning": "reasoning_content", "data": "data_json", "tool_request": "tool_request", "tool_response": "tool_response"}
        if isinstance(addition, str) and self._kind in kinds:
            addition = {"type": kinds[self._kind], "text": addition, **({"index": 0} if self._kind == "reasoning" else {})}
        await self._turn._write(delta(self.index, addition))

    async def set_data(self, value: Any) -> None:
        await self._turn._write(delta(self.index, {"type": "data", "value": value}))

    async def replace(self, content: str | Content, metadata: dict[str, Any] | None = None) -> None:
        """Replaces everything and closes the message."""
        await self._turn._write(full(self.index, content, metadata))

    async def finish(self, **how: Any) -> None:
        await self._turn._write(done(self.index, **how))

    @property
    def content(self) -> Content:
        return self._turn._writer.messages[self.index].settle()

    @property
    def is_open(self) -> bool:
        return self._turn._writer.messages[self.index].status == "streaming"


class State:
    """The state of the task: a JSON value that the agent keeps from turn to turn."""

    def __init__(self, turn: Turn, state: dict[str, Any] | None) -> None:
        self._turn = turn
        self.version: int = state["version"] if state else 0
        self.value: Any = state["value"] if state else None

    async def set(self, value: Any) -> None:
        await self._change({"value": value})

    async def patch(self, patch: dict[str, Any]) -> None:
        """A merge patch: null removes a key, an object is merged."""
        await self._change({"patch": patch})

    async def _change(self, change: dict[str, Any]) -> None:
        self.version += 1
        self.value = change["value"] if "value" in change else merged(self.value, change["patch"])
        await self._turn._write({"type": "state", "version": self.version, **change})
        for step in _around(current_step.get()):
            step.changes.append(change)


class Files:
    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def read(self, file: str) -> bytes:
        return await self._turn._calls.read_file(file, self._turn._held)

    async def store(self, content: bytes, name: str | None = None, mime_type: str = "application/octet-stream") -> dict[str, Any]:
        """Stores a file of the task, and returns it with its `id`."""
        headers = {"content-type": mime_type}
        if name is not None:
            headers["content-disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        return (await self._turn._calls.store_file(content, headers, self._turn._held))["file"]


class Turn:
    def __init__(self, claim: dict[str, Any], calls: Calls, over: Callable[[str], None], log: logging.LoggerAdapter[Any]) -> None:
        self._claim = claim
        self._calls = calls
        self._over = over
        self._held = {name: claim[name] for name in ("turn", "claim", "epoch")}
        self._writer = TurnWriter(self._held, claim["kept"], self._append, lambda: over("lost"))
        self._remembered = {step["name"]: step for step in claim["steps"]}
        self._names: set[str] = set()
        self._asked_names: set[str] = set()
        self._openers: dict[int, asyncio.Task[Any] | None] = {}
        self._is_over_budget: bool = claim.get("isOverBudget", False)
        self._waits: dict[str, dict[str, Any]] = {}
        self._active: set[str] = set()
        self._asking = 0
        self._has_answer = False
        # How many open waits keep a turn that cannot park: its heartbeat asks for their answers.
        self.waiting = 0
        self._changed = asyncio.Event()
        self._parking: asyncio.Task[None] | None = None
        self._children: dict[str, dict[str, Any]] = {}
        self.used: dict[str, float] = {}
        # Why the handler is canceled: canceled, lost, released or parked.
        self.over: str | None = None
        self.log = log
        self.task: dict[str, Any] = claim["task"]
        self.agent: str = claim["agent"]
        self.number: int = claim["number"]
        self.attempt: int = claim["attempt"]
        self.params: Any = claim.get("params")
        self.secrets: dict[str, str] = dict(claim.get("secrets", {}))
        self.inputs: list[Content] = [message["content"] for message in claim["inputs"]]
        self.text = "\n\n".join(content["text"] for content in self.inputs if content["type"] == "text")
        self.traceparent: str | None = claim.get("traceparent")
        self.deadline = time.monotonic() + claim["timeLeftMs"] / 1000
        self.state = State(self, claim.get("state"))
        self.files = Files(self)

    # What the turn says

    @contextlib.asynccontextmanager
    async def message(
        self, content: str | Content = "", metadata: dict[str, Any] | None = None, author: str | None = None
    ) -> AsyncIterator[Message]:
        opened = as_content(content)
        index = self._writer.next_index
        await self._write(start(index, opened, metadata, author))
        handle = Message(self, index, opened)
        try:
            yield handle
        except Exception as error:
            if handle.is_open:
                await self._write(done(index, status="failed", error=failure_of(error)))
            raise
        if handle.is_open:
            await handle.finish()

    async def send(self, content: str | Content, metadata: dict[str, Any] | None = None) -> None:
        """A whole message at once."""
        await self._write(full(self._writer.next_index, content, metadata))

    async def auto_send(self, updates: AsyncIterable[Update] | Iterable[Update]) -> Sent:
        """Sends a whole stream: a message for each of its indexes, and closes what the stream leaves open."""
        places = Places(self)
        try:
            async for update in iterate(updates):
                await places.write(update)
        except Exception as error:
            await places.close(status="failed", error=failure_of(error))
            raise
        await places.close()
        messages = [self._writer.messages[index].message() for index in places.indexes.values()]
        contents = [message["content"] for message in messages]
        return Sent(
            messages,
            "".join(content["text"] for content in contents if content["type"] == "text"),
            [content for content in contents if content["type"] == "tool_request"],
        )

    async def custom(self, name: str, data: Any) -> None:
        await self._write(custom(name, data))

    async def _write(self, update: Update) -> range:
        opened = self._writer.put(update)
        self._openers.update(dict.fromkeys(opened, asyncio.current_task()))
        for step in _around(current_step.get()):
            step.indexes.extend(opened)
        self._changed.set()
        await self._writer.room()
        return opened

    async def _append(self, held: dict[str, Any], first: int, updates: list[Update]) -> dict[str, Any]:
        body = {"appends": [{**held, "first": first, "updates": updates}]}
        return (await self._calls.post("append", body))["results"][0]

    # What the turn remembers

    async def step(self, name: str, work: Callable[[], Awaitable[T] | T]) -> T:
        """Runs the work once, whatever becomes of this attempt: a later one gets its result, and its messages are sent again."""
        if name in self._names:
            raise RivuletError("bad_call", f'Two steps are named "{name}", but a step is stored by its name')
        self._writer.check()
        self._names.add(name)
        self._active.add(name)
        try:
            if name in self._remembered:
                return await self._replay(self._remembered[name])
            self.check_budget()
            return await self._run_step(_Step(name, current_step.get()), work)
        except BaseException:
            self._names.discard(name)
            raise
        finally:
            self._active.discard(name)
            self._changed.set()

    async def _run_step(self, own: _Step, work: Callable[[], Any]) -> Any:
        token = current_step.set(own)
        began = time.monotonic()
        try:
            result = work()
            result = await result if inspect.isawaitable(result) else result
            for index in own.indexes:
                if self._writer.messages[index].status == "streaming":
                    await self._writer.write(done(index))
        finally:
            current_step.reset(token)
        messages = [self._writer.messages[index].message() for index in own.indexes]
        body = {
            **self._names_of_turn(),
            "name": own.name,
            "messages": messages,
            "durationMs": round((time.monotonic() - began) * 1000),
            **({"result": result} if result is not None else {}),
            **({"changes": own.changes} if own.changes else {}),
            **({"records": own.records, "usage": own.usage} if own.records else {}),
        }
        stored = await self._calls.post("step", body)
        self._learn(stored)
        await self._settled("step", stored, own.name)
        return result

    async def _replay(self, memory: dict[str, Any]) -> Any:
        self._count(memory.get("usage", {}))
        for change in memory.get("changes", []):
            await self.state._change(change)
        for message in memory.get("messages", []):
            index = self._writer.next_index
            how = {name: message[name] for name in ("status", "stopReason", "usage", "response", "error") if name in message}
            author = message.get("author")
            await self._write(start(index, message["content"], message.get("metadata"), None if author == "agent" else author))
            await self._write(done(index, **how))
        return memory.get("result")

    async def usage(self, used: dict[str, float], model: str | None = None) -> None:
        """Counts usage that no message carries."""
        record = {"id": str(uuid.uuid4()), "usage": used, **given(model=model)}
        self._count(used)
        own = current_step.get()
        if own is None:
            self._learn(await self._calls.post("usage", {**self._names_of_turn(), "records": [record]}))
            return
        own.records.append(record)
        for step in _around(own):
            for name, tokens in used.items():
                step.usage[name] = step.usage.get(name, 0) + tokens

    def check_budget(self) -> None:
        """Raises `budget_exceeded` if the task has used its budget. A step does it, too, before it runs."""
        if self._is_over_budget:
            raise RivuletError("budget_exceeded", "The task has used its budget")

    def _learn(self, result: dict[str, Any]) -> None:
        self._is_over_budget = self._is_over_budget or result.get("isOverBudget", False)

    def _count(self, used: dict[str, float]) -> None:
        for name, tokens in used.items():
            self.used[name] = self.used.get(name, 0) + tokens

    async def history(self) -> list[dict[str, Any]]:
        """The messages of the task before this turn, with its inputs."""
        return await self._pages("history?")

    async def _pages(self, path: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        after = None
        while True:
            page = await self._calls.get(path if after is None else f"{path}&after={after}", self._held)
            messages.extend(page["data"])
            after = page["nextCursor"]
            if after is None:
                return messages

    # What the turn waits for

    async def ask(
        self,
        name: str,
        title: str,
        *,
        schema: dict[str, Any] | None = None,
        kind: str | None = None,
        actions: tuple[str, ...] = ("accept", "decline"),
        expires_in: float = 7 * 86_400,
        on_expire: str = "fail",
        **more: Any,
    ) -> Answer:
        """Asks a person or a client. The turn is parked until there is an answer, and holds no worker meanwhile."""
        wanted = {
            **{"name": name, "kind": kind or ("form" if schema else "approval"), "title": title, "actions": list(actions)},
            **{"metadata": {}, "expires": {"inMs": round(expires_in * 1000)}, **given(schema=schema), **more},
        }
        [wait] = await self._open([wanted], "ask", "waits")
        if wait["status"] == "answered" and "answer" in wait:
            return Answer(**{key: wait["answer"].get(key) for key in ("action", "content", "comment", "by")})
        if on_expire == "decline":
            return Answer("decline", comment="expired")
        raise RivuletError("wait_expired", f'Wait "{name}" was not answered in time')

    async def sleep(self, name: str, seconds: float) -> None:
        """Sleeps without a worker, however long."""
        expires = {"inMs": round(seconds * 1000)}
        await self._open([{"name": name, "kind": "timer", "title": f"Until {name}", "actions": [], "metadata": {}, "expires": expires}], "ask", "waits")

    async def wait_for(self, name: str, *, title: str | None = None, expires_in: float = 7 * 86_400) -> Any:
        """Waits for a signal of this name, and returns its data."""
        expires = {"inMs": round(expires_in * 1000)}
        wanted = {"name": name, "kind": "event", "title": title or f"Waiting for {name}", "actions": [], "metadata": {}, "expires": expires}
        [wait] = await self._open([wanted], "ask", "waits")
        if wait["status"] != "answered":
            raise RivuletError("wait_expired", f'Wait "{name}" was not answered in time')
        return wait.get("answer", {}).get("content")

    async def spawn(
        self, name: str, agent: str, input: Any = None, *, params: Any = None, detached: bool = False, on_parent_end: str | None = None
    ) -> Child:
        """Starts a turn of another agent, and waits for its end without a worker."""
        wanted = {
            **{"name": name, "agent": agent, "detached": detached, **given(input=input, params=params)},
            "onParentEnd": on_parent_end or ("abandon" if detached else "cancel"),
        }
        closed = await self._open([wanted], "spawn", "children")
        child = self._children[name]
        if "error" in child:
            raise RivuletError(child["error"]["code"], child["error"]["message"])
        if not closed:
            return Child(child["task"], "queued")
        end = closed[0].get("answer", {}).get("content") or {}
        messages = [message for message in await self._pages(f"history?child={quote(name)}") if message["author"] == "agent"]
        texts = "".join(message["content"]["text"] for message in messages if message["content"]["type"] == "text")
        return Child(child["task"], end.get("status", "canceled"), texts, messages, end.get("error"))

    async def _open(self, wanted: list[dict[str, Any]], call: str, field_name: str) -> list[dict[str, Any]]:
        if current_step.get() is not None:
            raise RivuletError("bad_call", "A turn cannot wait inside a step: a step is stored when it ends, so wait outside")
        if any(self._writer.messages[index].status == "streaming" for index, task in self._openers.items() if task is asyncio.current_task()):
            raise RivuletError("bad_call", "A message is open while the turn waits: close it before you ask")
        names = [one["name"] for one in wanted]
        for name in names:
            if name in self._asked_names:
                raise RivuletError("bad_call", f'Two waits or children are named "{name}", but an answer is stored by its name')
        self._asked_names.update(names)
        try:
            return await self._closed(wanted, names, call, field_name)
        except BaseException:
            self._asked_names.difference_update(names)
            raise

    async def _closed(self, wanted: list[dict[str, Any]], names: list[str], call: str, field_name: str) -> list[dict[str, Any]]:
        self._asking += 1
        try:
            waits = await self._asked(wanted, call, field_name)
        finally:
            self._asking -= 1
        self._waits.update({wait["name"]: wait for wait in waits})
        while any(wait["name"] in names and wait["status"] == "open" for wait in self._waits.values()):
            if self._parking is None or self._parking.done():
                self._parking = asyncio.create_task(self._park())
            await self._parking
        return [self._waits[name] for name in names if name in self._waits]

    async def _asked(self, wanted: list[dict[str, Any]], call: str, field_name: str) -> list[dict[str, Any]]:
        while True:
            # What was said before is in the log before the question.
            await self._writer.drain()
            held = self._held if call == "ask" else self._names_of_turn()
            result = await self._calls.post(call, {**held, field_name: wanted})
            if result["result"] == "gap":
                self._writer.move_to(result)
                continue
            await self._settled(call, result, wanted[0]["name"])
            for child in result.get("children", []):
                self._children[child["name"]] = child
            return result["waits"]

    async def _park(self) -> None:
        """Once nothing else of the turn is under way. The worker cancels the handler, which runs again when a wait was closed."""
        await asyncio.sleep(0)
        try:
            while self._asking > 0 or self._active or self._writer.has_open_message():
                self._changed.clear()
                if self._has_answer:
                    await self._read_waits()
                    return
                if self._asking > 0:
                    await asyncio.sleep(0.01)
                    continue
                self.waiting = sum(wait["status"] == "open" for wait in self._waits.values())
                await self._changed.wait()
        finally:
            self.waiting = 0
        await self._writer.drain()
        result = await self._calls.post("park", {**self._held, "last": self._writer.last})
        if result["result"] == "gap":
            self._writer.move_to(result)
        elif result["result"] == "answered":
            await self._read_waits()
        elif result["result"] in ("parked", "superseded"):
            self._over("parked" if result["result"] == "parked" else "lost")
            await asyncio.get_running_loop().create_future()
        else:
            raise RivuletError("bad_call", "A message is open while the turn waits: close it before you ask")

    def answered(self) -> None:
        """A wait of the turn was closed."""
        self._has_answer = True
        self._changed.set()

    async def _read_waits(self) -> None:
        self._has_answer = False
        found = await self._calls.get("waits?", self._held)
        self._waits = {wait["name"]: wait for wait in found["waits"]}

    async def _settled(self, call: str, result: dict[str, Any], name: str) -> None:
        kind = result["result"]
        if kind == "superseded":
            self._over("lost")
            await asyncio.get_running_loop().create_future()
        if kind in ("too_large", "too_many"):
            raise RivuletError("step_too_large" if call == "step" else "too_many_waits", f'{call} "{name}" exceeds a limit of the turn: {kind}')

    def _names_of_turn(self) -> dict[str, Any]:
        return {"turn": self._held["turn"], "claim": self._held["claim"]}


class Places:
    """The messages of one stream, which numbers them as it likes: an index gets the next place of the turn when its message opens."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.indexes: dict[int, int] = {}

    async def write(self, update: str | Update) -> None:
        if isinstance(update, str):
            update = full(len(self.indexes), update)
        writer = self._turn._writer
        index = update.get("index")
        if index is None:
            await self._turn._write(update)
            return
        if index not in self.indexes and update["type"] == "done":
            return
        opened = await self._turn._write({**update, "index": self.indexes.get(index, writer.next_index)})
        if opened:
            self.indexes[index] = opened[0]

    async def close(self, **how: Any) -> None:
        for index in self.indexes.values():
            if self._turn._writer.messages[index].status == "streaming":
                await self._turn._write(done(index, **how))


async def iterate(updates: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Any]:
    if hasattr(updates, "__aiter__"):
        async for update in updates:  # type: ignore[union-attr]
            yield update
    else:
        for update in updates:  # type: ignore[union-attr]
            yield update


def merged(value: Any, patch: dict[str, Any]) -> dict[str, Any]:
    found = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), change) if isinstance(change, dict) else change
    return found


def _around(step: _Step | None) -> Iterable[_Step]:
    while step is not None:
        yield step
        step = step.around
