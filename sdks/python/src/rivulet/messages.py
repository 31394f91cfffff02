"""The messages of a turn: one that is written by hand, and those of a stream, which numbers its messages as it likes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Iterable

from .updates import Content, Delta, Update, delta, done, full

if TYPE_CHECKING:
    from .turn import Turn


@dataclass
class Sent:
    """What a stream of updates has become."""

    messages: list[dict[str, Any]]
    text: str
    tool_calls: list[Content]


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
