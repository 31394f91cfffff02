"""The data that turns share: the state and the files of their task, and the values above it."""
from __future__ import annotations

import uuid
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


class Store:
    """Values that outlive the task. A scope is `customer` (the tasks with one `concurrencyKey`), `agent` or `tenant`.

    With `version`, a change is made only if the value has it, and raises `precondition_failed` otherwise; 0 stands for no value yet.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def get(self, scope: str, key: str) -> dict[str, Any] | None:
        """`value` and `version`; None before the first."""
        return (await self._use("get", scope, key=key))["stored"]

    async def put(self, scope: str, key: str, value: Any, version: int | None = None) -> dict[str, Any]:
        return (await self._use("put", scope, key=key, value=value, change=str(uuid.uuid4()), **_given(version)))["stored"]

    async def patch(self, scope: str, key: str, patch: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        """A merge patch: null removes a key, an object is merged."""
        return (await self._use("patch", scope, key=key, value=patch, change=str(uuid.uuid4()), **_given(version)))["stored"]

    async def remove(self, scope: str, key: str, version: int | None = None) -> None:
        await self._use("remove", scope, key=key, **_given(version))

    async def list(self, scope: str, **search: Any) -> dict[str, Any]:
        """A page by key, with `data` and `nextCursor`; takes `prefix`, `limit` and `cursor`."""
        return await self._use("list", scope, **search)

    async def search(self, scope: str, q: str, **search: Any) -> dict[str, Any]:
        """The values with these words in their texts, their names or their key."""
        return await self._use("list", scope, q=q, **search)

    async def _use(self, action: str, scope: str, **call: Any) -> dict[str, Any]:
        held = self._turn._held
        body = {"turn": held["turn"], "claim": held["claim"], "call": {"action": action, "scope": scope, **call}}
        return await self._turn._calls.post("store", body)


def _given(version: int | None) -> dict[str, int]:
    return {} if version is None else {"version": version}


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
