"""Runs one turn of an agent without a platform: for tests."""
from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Mapping

from .agent import Agent, RunningTurn
from .errors import RivuletError
from .task_data import merged
from .updates import as_content


@dataclass
class TestTurn:
    """What a turn has become. `status` is `completed`, `failed` or `parked`."""

    __test__ = False
    status: str = ""
    error: dict[str, str] | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    steps: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    store: dict[str, dict[str, Any]] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(message["content"].get("text", "") for message in self.messages if message["author"] == "agent")


class MemoryStore:
    """The values of one customer, one agent and one tenant."""

    def __init__(self, given: Mapping[str, Mapping[str, Any]]) -> None:
        self._version = 0
        self._stored: dict[tuple[str, str], dict[str, Any]] = {}
        for scope, values in given.items():
            for key, value in values.items():
                self._set(scope, key, value)

    def use(self, call: dict[str, Any]) -> dict[str, Any]:
        action, scope = call["action"], call["scope"]
        if action == "list":
            return self._list(**{name: value for name, value in call.items() if name != "action"})
        place = (scope, call["key"])
        stored = self._stored.get(place)
        if action == "get":
            return {"stored": stored}
        if call.get("version") not in (None, stored["version"] if stored else 0):
            raise RivuletError("precondition_failed", "The value has another version")
        if action == "remove":
            self._stored.pop(place, None)
            return {"stored": None}
        value = call["value"] if action == "put" else merged(stored and stored["value"], call["value"])
        return {"stored": self._set(scope, call["key"], value)}

    def values(self) -> dict[str, dict[str, Any]]:
        values: dict[str, dict[str, Any]] = {}
        for (scope, key), stored in self._stored.items():
            values.setdefault(scope, {})[key] = stored["value"]
        return values

    def _set(self, scope: str, key: str, value: Any) -> dict[str, Any]:
        self._version += 1
        self._stored[scope, key] = {"scope": scope, "key": key, "value": value, "version": self._version}
        return self._stored[scope, key]

    def _list(self, scope: str, prefix: str = "", q: str = "", limit: int = 20, cursor: str = "") -> dict[str, Any]:
        found = [
            stored
            for (own, key), stored in sorted(self._stored.items())
            if own == scope and key.startswith(prefix) and (not cursor or key > cursor)
            and all(word in f"{key} {json.dumps(stored['value'], ensure_ascii=False)}".lower() for word in q.lower().split())
        ]
        return {"data": found[:limit], "nextCursor": found[limit - 1]["key"] if len(found) > limit else None}


class MemoryCalls:
    """Plays the server of one turn. Waits are answered at once, by their names; one without an answer parks the turn."""

    def __init__(self, turn: TestTurn, replies: Mapping[str, Any], history: list[dict[str, Any]], store: MemoryStore) -> None:
        self._turn = turn
        self._replies = replies
        self._history = history
        self._store = store
        self._files: dict[str, bytes] = {}

    async def post(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        if call == "append":
            [append] = body["appends"]
            self._turn.updates.extend(append["updates"])
            return {"results": [{"result": "ok", "next": append["first"] + len(append["updates"])}]}
        if call == "step":
            self._turn.steps[body["name"]] = body.get("result")
            return {"result": "remembered", "isOverBudget": False}
        if call == "ask":
            return {"result": "asked", "waits": [self._wait(wait) for wait in body["waits"]], "isInLog": True}
        if call == "spawn":
            children = [{"name": child["name"], "task": str(uuid.uuid4())} for child in body["children"]]
            waits = [self._wait({**child, "kind": "task"}) for child in body["children"] if not child["detached"]]
            return {"result": "spawned", "children": children, "waits": waits, "isInLog": True}
        if call == "finish":
            self._turn.error = body.get("error")
            return {"result": "committed"}
        if call == "store":
            return self._store.use(body["call"])
        return {"result": {"park": "parked", "release": "released"}.get(call, "ok")}

    async def get(self, path: str, turn: dict[str, Any]) -> dict[str, Any]:
        return {"data": [] if "child=" in path else self._history, "nextCursor": None}

    async def read_file(self, file: str, turn: dict[str, Any]) -> bytes:
        return self._files[file]

    async def store_file(self, content: bytes, headers: dict[str, str], turn: dict[str, Any]) -> dict[str, Any]:
        file = str(uuid.uuid4())
        self._files[file] = content
        return {"file": {"id": file, "size": len(content)}}

    def _wait(self, wanted: dict[str, Any]) -> dict[str, Any]:
        name = wanted["name"]
        if name not in self._replies:
            return {**wanted, "status": "open"}
        answer = self._replies[name]
        given = answer if isinstance(answer, dict) and "action" in answer else {"action": "accept", "content": answer}
        return {**wanted, "status": "answered", "answer": given}


async def test_turn(
    agent: Agent,
    input: Any = "",
    *,
    params: Any = None,
    replies: Mapping[str, Any] = {},
    steps: Mapping[str, Any] = {},
    state: Any = None,
    store: Mapping[str, Mapping[str, Any]] = {},
    history: list[dict[str, Any]] = [],
    secrets: Mapping[str, str] = {},
    timeout: float = 60,
) -> TestTurn:
    """Runs the agent's handler once. `steps` are results of an earlier attempt, `replies` those of waits, and `store` values, by name."""
    turn = TestTurn()
    claim = {
        **{"turn": str(uuid.uuid4()), "claim": "test", "epoch": 1, "attempt": 1, "agent": agent.name, "number": 1, "kept": []},
        **{"task": {"id": str(uuid.uuid4()), "agent": agent.name}, "inputs": [{"author": "user", "content": as_content(input)}]},
        **{"params": params, "secrets": dict(secrets), "timeLeftMs": timeout * 1000, "history": {"before": 1}},
        "steps": [{"name": name, "result": result, "messages": []} for name, result in steps.items()],
        **({"state": {"version": 1, "value": state}} if state is not None else {}),
    }
    values = MemoryStore(store)
    running = RunningTurn(agent, claim, MemoryCalls(turn, replies, history, values))
    turn.status = await running.run()
    turn.messages = [message.message() for message in running.turn._writer.messages]
    turn.state = running.turn.state.value
    turn.store = values.values()
    return turn


test_turn.__test__ = False  # type: ignore[attr-defined]
