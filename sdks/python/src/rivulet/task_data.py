"""The data of a task that its turns share: the state, and files."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from .turn import Turn


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
        self._turn._steps.note_change(change)


class Files:
    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def read(self, file: str) -> bytes:
        return await self._turn._calls.read_file(file, self._turn._held)

    async def store(self, content: bytes, name: str | None = None, mime_type: str = "application/octet-stream") -> dict[str, Any]:
        """Stores a file of the task, and returns it with its `id`."""
        headers = {"content-type": mime_type}
        if name is not None:
            headers["x-filename"] = f"UTF-8''{quote(name, safe='')}"
        return (await self._turn._calls.store_file(content, headers, self._turn._held))["file"]


def merged(value: Any, patch: dict[str, Any]) -> dict[str, Any]:
    found = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), change) if isinstance(change, dict) else change
    return found
