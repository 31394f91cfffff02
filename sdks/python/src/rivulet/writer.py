"""
Sends the output of one turn, in order, exactly once.

An update leaves at once, and while a call is under way the next ones wait, and neighbouring deltas of a message become one. What was sent is frozen under its
number, so a call that is repeated writes nothing twice. All updates of the turn are kept, because a log that lost its entries needs them again.
"""
from __future__ import annotations

import asyncio
import json
from typing import Any, Awaitable, Callable

from .errors import RivuletError
from .updates import DeltaAccumulator, Update, delta, empty_content, start

max_unsent = 1024 * 1024
# An API takes 1,000 JSON values in a call, or more, and an update has about six.
max_together = 150
# Half of what an API takes in a call by default. An update that is larger goes by itself.
max_call_bytes = 1024 * 1024
max_delta_length = 64 * 1024
Append = Callable[[dict[str, Any], int, list[Update]], Awaitable[dict[str, Any]]]


class TurnLost(Exception):
    """Another worker has the turn, or it has ended."""


class TurnWriter:
    def __init__(self, held: dict[str, Any], kept: list[dict[str, Any]], append: Append, on_lost: Callable[[], None]) -> None:
        self.held = held
        self.kept = len(kept)
        self.messages: list[DeltaAccumulator] = []
        self._append = append
        self._on_lost = on_lost
        self._updates: list[Update] = []
        self._sizes: list[int] = []
        self._acknowledged = 0
        self._frozen = 0
        self._unsent = 0
        self._error: BaseException | None = None
        self._sending: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()

    @property
    def last(self) -> int:
        """The number of the last update that is in the log."""
        return self._acknowledged

    @property
    def next_index(self) -> int:
        return len(self.messages)

    def has_open_message(self) -> bool:
        return any(message.status == "streaming" for message in self.messages)

    async def write(self, update: Update) -> None:
        self.put(update)
        await self.room()

    def put(self, update: Update) -> range:
        """Takes an update, and returns the indexes of the messages that it opens. It waits for nothing, so parallel code cannot take the same index."""
        before = self.next_index
        for one in self._opened(update):
            self._fold(one)
            self._take(one)
        return range(before, self.next_index)

    async def room(self) -> None:
        """Waits while too much is unsent."""
        while self._unsent > max_unsent and self._error is None:
            await self._progressed()
        self.check()

    async def drain(self) -> None:
        """Returns when everything that was written is in the log."""
        while self._acknowledged < len(self._updates) and self._error is None:
            await self._progressed()
        self.check()

    def move_to(self, place: dict[str, Any]) -> None:
        """Goes on where the log stands: in a new epoch, with everything."""
        self.held["epoch"] = place.get("epoch", self.held["epoch"])
        self._acknowledged = place["next"] - 1
        self._unsent = sum(self._sizes[self._acknowledged :])
        self._send()

    def stop(self, error: BaseException) -> None:
        """Nothing is taken or sent any more."""
        self._error = self._error or error
        self._progress.set()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _opened(self, update: Update) -> list[Update]:
        """A first delta opens its message; one without text opens none, and a close of a message that never opened closes nothing."""
        self.check()
        kind, index = update["type"], update.get("index")
        if kind == "delta" and not (update["delta"].get("text", "-") and update["delta"].get("bytes", "-")):
            return []
        if kind == "delta" and index == self.next_index:
            return [start(index, empty_content(update["delta"]["type"])), *pieces_of(update)]
        if kind == "done" and index >= self.next_index:
            return []
        return pieces_of(update)

    def _fold(self, update: Update) -> None:
        kind, index = update["type"], update.get("index")
        if kind in ("custom", "state", "join"):
            for content in update.get("inputs", []) if kind == "join" else []:
                self.messages.append(DeltaAccumulator(content, author="user"))
                self.messages[-1].close()
            return
        if not isinstance(index, int) or index < 0 or index > self.next_index:
            raise RivuletError("index_out_of_order", f"{kind} at message {index}: the next new message must have index {self.next_index}")
        if index < self.next_index and self.messages[index].status != "streaming":
            raise RivuletError("message_closed", f"{kind} at message {index}: the message is closed")
        if kind == "start":
            if index < self.next_index:
                raise RivuletError("index_out_of_order", f"start at message {index}: the message is already open")
            self.messages.append(DeltaAccumulator(update["content"], update.get("metadata"), update.get("author", "agent")))
        elif kind == "delta":
            self.messages[index].add(update["delta"])
        elif kind == "full":
            whole = DeltaAccumulator(update["content"], update.get("metadata"))
            whole.close()
            self.messages[index:] = [whole, *self.messages[index + 1 :]]
        elif kind == "done":
            self.messages[index].close(**{name: value for name, value in update.items() if name not in ("type", "index")})
        else:
            raise RivuletError("bad_event", f"{kind} is no update")

    def _take(self, update: Update) -> None:
        # What a turn said beside its messages before it parked was said then.
        if update["type"] == "custom" and self.next_index < self.kept:
            return
        size = len(json.dumps(update))
        merged = self._merged(update)
        if merged is not None:
            self._updates[-1] = merged
            self._sizes[-1] += size
        else:
            self._updates.append(update)
            self._sizes.append(size)
        self._unsent += size
        self._send()

    def _merged(self, update: Update) -> Update | None:
        if len(self._updates) <= self._frozen or update["type"] != "delta" or self._sizes[-1] > 16_000:
            return None
        last = self._updates[-1]
        if last["type"] != "delta" or last["index"] != update["index"]:
            return None
        one, other = last["delta"], update["delta"]
        if "text" not in one or one["type"] != other["type"] or one.get("index") != other.get("index"):
            return None
        return delta(update["index"], {**one, "text": one["text"] + other["text"]})

    def _send(self) -> None:
        if self._sending is None and self._acknowledged < len(self._updates) and self._error is None:
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            # What the agent says in the same tick travels together.
            await asyncio.sleep(0)
            failures = 0
            while self._acknowledged < len(self._updates) and self._error is None:
                first = self._acknowledged + 1
                batch = self._batch(first - 1)
                self._frozen = max(self._frozen, first - 1 + len(batch))
                result = await self._append(self.held, first, batch)
                if result["result"] == "unavailable":
                    failures += 1
                    await asyncio.sleep(min(2, 0.1 * 2**failures))
                    continue
                failures = 0
                self._settle(result)
        except BaseException as error:
            self.stop(error)
        finally:
            self._sending = None
            self._progress.set()

    def _batch(self, begin: int) -> list[Update]:
        end, size = begin, 0
        while end < min(len(self._updates), begin + max_together) and (end == begin or size + self._sizes[end] <= max_call_bytes):
            size += self._sizes[end]
            end += 1
        return self._updates[begin:end]

    def _settle(self, result: dict[str, Any]) -> None:
        kind = result["result"]
        if kind in ("ok", "duplicate"):
            self._acknowledged = result["next"] - 1
            self._unsent = sum(self._sizes[self._acknowledged :])
        elif kind == "gap":
            self.held["epoch"] = result.get("epoch", self.held["epoch"])
            self._acknowledged = result["next"] - 1
        elif kind in ("fenced", "closed"):
            self._on_lost()
            raise TurnLost(kind)
        else:
            error = result.get("error", {"code": "output_too_large", "message": "The turn has no room for more output"})
            raise RivuletError(error["code"], error["message"])
        self._progress.set()

    async def _progressed(self) -> None:
        self._progress.clear()
        self._send()
        await self._progress.wait()


def pieces_of(update: Update) -> list[Update]:
    """A long text is sent in several deltas, so that a call keeps its size."""
    addition = update.get("delta", {})
    text = addition.get("text", "") if update["type"] == "delta" else ""
    if len(text) <= max_delta_length:
        return [update]
    return [delta(update["index"], {**addition, "text": text[at : at + max_delta_length]}) for at in range(0, len(text), max_delta_length)]
