"""
One turn, as its agent sees it: what came in, the ways to say something, steps that are not run twice, waits and children.

The handler runs from the top again when the turn was parked for a wait, or when an attempt failed: steps return what they have returned before.
"""
from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from typing import Any, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Protocol, TypeVar

from .budget import Budget
from .errors import RivuletError, failure_of
from .messages import Message, Places, Sent, iterate
from .steps import Steps, current_step
from .task_data import Files, State, Store
from .updates import Content, Update, as_content, custom, done, full, given, start
from .waits import Answer, Child, Waits
from .writer import TurnWriter

T = TypeVar("T")


class Calls(Protocol):
    """The calls of a worker that a turn makes; `rivulet.testing` plays them."""

    async def post(self, call: str, body: dict[str, Any]) -> dict[str, Any]: ...
    async def get(self, path: str, turn: dict[str, Any]) -> dict[str, Any]: ...
    async def read_file(self, file: str, turn: dict[str, Any]) -> bytes: ...
    async def store_file(self, content: bytes, headers: dict[str, str], turn: dict[str, Any]) -> dict[str, Any]: ...


class Turn:
    def __init__(self, claim: dict[str, Any], calls: Calls, over: Callable[[str], None], log: logging.LoggerAdapter[Any]) -> None:
        self._claim = claim
        self._calls = calls
        self._over = over
        self._held = {name: claim[name] for name in ("turn", "claim", "epoch")}
        self._writer = TurnWriter(self._held, claim["kept"], self._append, lambda: over("lost"))
        self._openers: dict[int, asyncio.Task[Any] | None] = {}
        # The number of the last turn that joined this one.
        self._joined = 0
        # Set whenever something ends that keeps the turn from parking.
        self._changed = asyncio.Event()
        self._steps = Steps(self, claim["steps"])
        self._waits = Waits(self)
        self._budget = Budget(claim)
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
        self.store = Store(self)
        self.files = Files(self)

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

    async def step(self, name: str, work: Callable[[], Awaitable[T] | T]) -> T:
        """Runs the work once, whatever becomes of this attempt: a later one gets its result, and its messages are sent again."""
        return await self._steps.run(name, work)

    async def usage(self, used: dict[str, float], model: str | None = None) -> None:
        """Counts usage that no message carries."""
        record = {"id": str(uuid.uuid4()), "usage": used, **given(model=model)}
        self._budget.count(used)
        self._budget.spend(used, model)
        if not self._steps.note_usage(record):
            self._budget.learn(await self._calls.post("usage", {**self._names_of_turn(), "records": [record]}))

    def check_budget(self) -> None:
        """Raises `budget_exceeded` if the task has used its budget. A step does it, too, before it runs."""
        self._budget.check()

    async def history(self) -> list[dict[str, Any]]:
        """The messages of the task before this turn, with its inputs."""
        return await self._pages("history?")

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
        return await self._waits.ask(wanted, on_expire)

    async def sleep(self, name: str, seconds: float) -> None:
        """Sleeps without a worker, however long."""
        await self._waits.sleep(name, seconds)

    async def wait_for(self, name: str, *, title: str | None = None, expires_in: float = 7 * 86_400) -> Any:
        """Waits for a signal of this name, and returns its data."""
        return await self._waits.wait_for(name, title or f"Waiting for {name}", expires_in)

    async def spawn(
        self, name: str, agent: str, input: Any = None, *, params: Any = None, detached: bool = False, on_parent_end: str | None = None
    ) -> Child:
        """Starts a turn of another agent, and waits for its end without a worker."""
        wanted = {
            **{"name": name, "agent": agent, "detached": detached, **given(input=input, params=params)},
            "onParentEnd": on_parent_end or ("abandon" if detached else "cancel"),
        }
        return await self._waits.spawn(wanted)

    async def take_inputs(self, name: str | None = None) -> list[Content]:
        """
        Inputs that came meanwhile and want to join the turn; they become messages of it. With a name, the place where they were taken is stored as a step, so
        that a later run of the handler gets the same ones there; without a name, it gets them at its first chance.
        """
        if current_step.get() is not None:
            raise RivuletError("bad_call", "A turn cannot take inputs inside a step: a step is stored when it ends, so take them outside")
        fresh: list[dict[str, Any]] | None = None

        async def take() -> list[int]:
            nonlocal fresh
            fresh = await self._take(self._joined)
            return [one["turn"] for one in fresh]

        numbers = await (take() if name is None else self.step(name, take))
        joined = fresh if fresh is not None else await self._take(self._joined, max(numbers)) if numbers else []
        for one in joined:
            self._joined = one["turn"]
            await self._write({"type": "join", **one})
        return [content for one in joined for content in one["inputs"]]

    async def _take(self, after: int, up_to: int | None = None) -> list[dict[str, Any]]:
        found = await self._calls.post("take", {**self._held, "after": after, **given(upTo=up_to)})
        if found["joined"] is None:
            await self._settled("take", {"result": "superseded"}, "")
        return [{"turn": one["turn"], "inputs": one["inputs"]} for one in found["joined"]]

    async def _write(self, update: Update, is_repeated: bool = False) -> range:
        opened = self._writer.put(update)
        if "usage" in update and not is_repeated and update["index"] >= self._writer.kept:
            self._budget.spend(update["usage"], update.get("response", {}).get("model"))
        self._openers.update(dict.fromkeys(opened, asyncio.current_task()))
        self._steps.note_messages(opened)
        self._changed.set()
        await self._writer.room()
        return opened

    async def _append(self, held: dict[str, Any], first: int, updates: list[Update]) -> dict[str, Any]:
        body = {"appends": [{**held, "first": first, "updates": updates}]}
        return (await self._calls.post("append", body))["results"][0]

    async def _pages(self, path: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        after = None
        while True:
            page = await self._calls.get(path if after is None else f"{path}&after={after}", self._held)
            messages.extend(page["data"])
            after = page["nextCursor"]
            if after is None:
                return messages

    async def _settled(self, call: str, result: dict[str, Any], name: str) -> None:
        """Raises what a call about a step or a wait was refused for. It never returns if the turn is lost."""
        kind = result["result"]
        if kind == "superseded":
            self._over("lost")
            await asyncio.get_running_loop().create_future()
        if kind in ("too_large", "too_many"):
            raise RivuletError("step_too_large" if call == "step" else "too_many_waits", f'{call} "{name}" exceeds a limit of the turn: {kind}')

    def _names_of_turn(self) -> dict[str, Any]:
        return {"turn": self._held["turn"], "claim": self._held["claim"]}
