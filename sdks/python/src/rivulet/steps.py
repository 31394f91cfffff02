"""The steps of a turn: work that a later attempt does not run again, because its result, its messages and its changes are stored."""
from __future__ import annotations

import contextvars
import inspect
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Iterable, TypeVar

from .errors import RivuletError
from .updates import done, start

if TYPE_CHECKING:
    from .turn import Turn

T = TypeVar("T")


@dataclass
class Step:
    name: str
    around: Step | None
    indexes: list[int] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, float] = field(default_factory=dict)


current_step: contextvars.ContextVar[Step | None] = contextvars.ContextVar("current_step", default=None)


class Steps:
    def __init__(self, turn: Turn, stored: list[dict[str, Any]]) -> None:
        self._turn = turn
        self._stored = {step["name"]: step for step in stored}
        self._names: set[str] = set()
        self._active: set[str] = set()

    @property
    def is_running(self) -> bool:
        return bool(self._active)

    def note_messages(self, indexes: Iterable[int]) -> None:
        for step in _around(current_step.get()):
            step.indexes.extend(indexes)

    def note_change(self, change: dict[str, Any]) -> None:
        for step in _around(current_step.get()):
            step.changes.append(change)

    def note_usage(self, record: dict[str, Any]) -> bool:
        """Whether a step runs, which stores the record when it ends."""
        own = current_step.get()
        if own is None:
            return False
        own.records.append(record)
        _count(record["usage"])
        return True

    async def run(self, name: str, work: Callable[[], Awaitable[T] | T]) -> T:
        """Runs the work once, whatever becomes of this attempt: a later one gets its result, and its messages are sent again."""
        if name in self._names:
            raise RivuletError("bad_call", f'Two steps are named "{name}", but a step is stored by its name')
        self._turn._writer.check()
        self._names.add(name)
        self._active.add(name)
        try:
            if name in self._stored:
                return await self._replay(self._stored[name])
            self._turn.check_budget()
            return await self._run(Step(name, current_step.get()), work)
        except BaseException:
            self._names.discard(name)
            raise
        finally:
            self._active.discard(name)
            self._turn._changed.set()

    async def _run(self, own: Step, work: Callable[[], Any]) -> Any:
        token = current_step.set(own)
        began = time.monotonic()
        try:
            result = work()
            result = await result if inspect.isawaitable(result) else result
            for index in own.indexes:
                if self._turn._writer.messages[index].status == "streaming":
                    await self._turn._writer.write(done(index))
        finally:
            current_step.reset(token)
        messages = [self._turn._writer.messages[index].message() for index in own.indexes]
        body = {
            **self._turn._names_of_turn(),
            "name": own.name,
            "messages": messages,
            "durationMs": round((time.monotonic() - began) * 1000),
            **({"result": result} if result is not None else {}),
            **({"changes": own.changes} if own.changes else {}),
            **({"records": own.records} if own.records else {}),
            **({"usage": own.usage} if own.usage else {}),
        }
        stored = await self._turn._calls.post("step", body)
        self._turn._budget.learn(stored)
        await self._turn._settled("step", stored, own.name)
        return result

    async def _replay(self, memory: dict[str, Any]) -> Any:
        self._turn._budget.count(memory.get("usage", {}))
        _count(memory.get("usage", {}))
        for change in memory.get("changes", []):
            await self._turn.state._change(change)
        for message in memory.get("messages", []):
            index = self._turn._writer.next_index
            how = {name: message[name] for name in ("status", "stopReason", "usage", "response", "error") if name in message}
            author = message.get("author")
            await self._turn._write(start(index, message["content"], message.get("metadata"), None if author == "agent" else author))
            await self._turn._write(done(index, **how), is_repeated=True)
        return memory.get("result")


def _count(used: dict[str, float]) -> None:
    """In each step that runs, because a step that is replayed does not reach those in it."""
    for step in _around(current_step.get()):
        for name, tokens in used.items():
            step.usage[name] = step.usage.get(name, 0) + tokens


def _around(step: Step | None) -> Iterable[Step]:
    while step is not None:
        yield step
        step = step.around
