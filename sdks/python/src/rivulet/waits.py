"""The waits and children of a turn. It is parked for them once nothing else of it is under way."""
from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .errors import RivuletError
from .steps import current_step

if TYPE_CHECKING:
    from .turn import Turn


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


class Waits:
    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._names: set[str] = set()
        self._waits: dict[str, dict[str, Any]] = {}
        self._children: dict[str, dict[str, Any]] = {}
        self._asking = 0
        self._has_answer = False
        # How many open waits keep a turn that cannot park: its heartbeat asks for their answers.
        self.waiting = 0
        self._parking: asyncio.Task[None] | None = None
        self._awaiting = 0

    async def ask(self, wanted: dict[str, Any], on_expire: str) -> Answer:
        [wait] = await self._open([wanted], "ask", "waits")
        if wait["status"] == "answered" and "answer" in wait:
            return Answer(**{key: wait["answer"].get(key) for key in ("action", "content", "comment", "by")})
        if on_expire == "decline":
            return Answer("decline", comment="expired")
        raise RivuletError("wait_expired", f'Wait "{wanted["name"]}" was not answered in time')

    async def sleep(self, name: str, seconds: float) -> None:
        expires = {"inMs": round(seconds * 1000)}
        await self._open([{"name": name, "kind": "timer", "title": f"Until {name}", "actions": [], "metadata": {}, "expires": expires}], "ask", "waits")

    async def wait_for(self, name: str, title: str, expires_in: float) -> Any:
        expires = {"inMs": round(expires_in * 1000)}
        [wait] = await self._open([{"name": name, "kind": "event", "title": title, "actions": [], "metadata": {}, "expires": expires}], "ask", "waits")
        if wait["status"] != "answered":
            raise RivuletError("wait_expired", f'Wait "{name}" was not answered in time')
        return wait.get("answer", {}).get("content")

    async def spawn(self, wanted: dict[str, Any]) -> Child:
        name = wanted["name"]
        closed = await self._open([wanted], "spawn", "children")
        child = self._children[name]
        if "error" in child:
            raise RivuletError(child["error"]["code"], child["error"]["message"])
        if not closed:
            return Child(child["task"], "queued")
        end = closed[0].get("answer", {}).get("content") or {}
        messages = [message for message in await self._turn._pages(f"history?child={quote(name)}") if message["author"] == "agent"]
        texts = "".join(message["content"]["text"] for message in messages if message["content"]["type"] == "text")
        return Child(child["task"], end.get("status", "canceled"), texts, messages, end.get("error"))

    def answered(self) -> None:
        """A wait of the turn was closed."""
        self._has_answer = True
        self._turn._changed.set()

    async def _open(self, wanted: list[dict[str, Any]], call: str, field_name: str) -> list[dict[str, Any]]:
        if current_step.get() is not None:
            raise RivuletError("bad_call", "A turn cannot wait inside a step: a step is stored when it ends, so wait outside")
        if any(self._turn._writer.messages[index].status == "streaming" for index, task in self._turn._openers.items() if task is asyncio.current_task()):
            raise RivuletError("bad_call", "A message is open while the turn waits: close it before you ask")
        names = [one["name"] for one in wanted]
        for name in names:
            if name in self._names:
                raise RivuletError("bad_call", f'Two waits or children are named "{name}", but an answer is stored by its name')
        self._names.update(names)
        try:
            return await self._closed(wanted, names, call, field_name)
        except BaseException:
            self._names.difference_update(names)
            raise

    async def _closed(self, wanted: list[dict[str, Any]], names: list[str], call: str, field_name: str) -> list[dict[str, Any]]:
        self._asking += 1
        try:
            waits = await self._asked(wanted, call, field_name)
        finally:
            self._asking -= 1
            self._turn._changed.set()
        self._waits.update({wait["name"]: wait for wait in waits})
        while any(wait["name"] in names and wait["status"] == "open" for wait in self._waits.values()):
            await self._parked()
        return [self._waits[name] for name in names if name in self._waits]

    async def _parked(self) -> None:
        """All questions share the parking. It ends with the last of them, and not with one that is canceled."""
        if self._parking is None or self._parking.done():
            self._parking = asyncio.create_task(self._park())
        parking = self._parking
        self._awaiting += 1
        try:
            await asyncio.wait({parking})
        finally:
            self._awaiting -= 1
            if self._awaiting == 0 and not parking.done():
                parking.cancel()
                self._parking = None
        parking.result()

    async def _asked(self, wanted: list[dict[str, Any]], call: str, field_name: str) -> list[dict[str, Any]]:
        while True:
            # What was said before is in the log before the question.
            await self._turn._writer.drain()
            held = self._turn._held if call == "ask" else self._turn._names_of_turn()
            result = await self._turn._calls.post(call, {**held, field_name: wanted})
            if result["result"] == "gap":
                self._turn._writer.move_to(result)
                continue
            await self._turn._settled(call, result, wanted[0]["name"])
            for child in result.get("children", []):
                self._children[child["name"]] = child
            return result["waits"]

    async def _park(self) -> None:
        """Once nothing else of the turn is under way. The worker cancels the handler, which runs again when a wait was closed."""
        await asyncio.sleep(0)
        try:
            while self._asking > 0 or self._turn._steps.is_running or self._turn._writer.has_open_message():
                self._turn._changed.clear()
                if self._has_answer:
                    await self._read_waits()
                    return
                self.waiting = sum(wait["status"] == "open" for wait in self._waits.values())
                await self._turn._changed.wait()
        finally:
            self.waiting = 0
        await self._turn._writer.drain()
        result = await self._turn._calls.post("park", {**self._turn._held, "last": self._turn._writer.last})
        if result["result"] == "gap":
            self._turn._writer.move_to(result)
        elif result["result"] == "answered":
            await self._read_waits()
        elif result["result"] in ("parked", "superseded"):
            self._turn._over("parked" if result["result"] == "parked" else "lost")
            await asyncio.get_running_loop().create_future()
        else:
            raise RivuletError("bad_call", "A message is open while the turn waits: close it before you ask")

    async def _read_waits(self) -> None:
        self._has_answer = False
        found = await self._turn._calls.get("waits?", self._turn._held)
        # A question that was asked meanwhile may not be among them.
        self._waits.update({wait["name"]: wait for wait in found["waits"]})
