"""Claims turns and runs them side by side in one event loop, until it is asked to stop."""
from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import time
import urllib.parse
import uuid
from typing import Any, Iterable

from .agent import Agent, RunningTurn, logger
from .errors import RivuletError
from .http import Http

protocol = 1
poll_ms = 5_000


class ApiCalls:
    """The worker protocol, over HTTP."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def post(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"x-turn-id": body["turn"], "x-claim-id": body["claim"]} if "claim" in body else {}
        if call == "append":
            headers = headers_of(body["appends"][0])
        return await self._http.json("POST", f"/worker/v1/{call}", body, headers)

    async def get(self, path: str, turn: dict[str, Any]) -> dict[str, Any]:
        return await self._http.json("GET", f"/worker/v1/{path}", None, headers_of(turn))

    async def read_file(self, file: str, turn: dict[str, Any]) -> bytes:
        return (await self._http.request("GET", f"/worker/v1/files/{file}", None, headers_of(turn), 300))[2]

    async def store_file(self, content: bytes, headers: dict[str, str], turn: dict[str, Any]) -> dict[str, Any]:
        reply = (await self._http.request("POST", "/worker/v1/files", content, {**headers, **headers_of(turn)}, 300))[2]
        return json.loads(reply)


def headers_of(turn: dict[str, Any]) -> dict[str, str]:
    return {"x-turn-id": turn["turn"], "x-claim-id": turn["claim"]}


def agents_by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    named: dict[str, Agent] = {}
    for one in agents:
        if named.setdefault(one.name, one) is not one:
            raise RivuletError("validation_failed", f"Two agents are named {one.name}")
    return named


def url_of_environment() -> str:
    """The API sends the secrets of tasks to workers, so a network that other programs can read needs TLS."""
    url = os.environ.get("RIVULET_URL") or "http://127.0.0.1:4000"
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    is_this_machine = host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host, re.ASCII)
    if parts.scheme == "https" or is_this_machine or os.environ.get("ALLOW_PLAINTEXT") == "on":
        return url
    raise RivuletError(
        "validation_failed",
        "RIVULET_URL leads to another machine without TLS, and the API sends secrets of tasks to workers: use https://, or set ALLOW_PLAINTEXT=on if no other program can read that network",
    )


class Worker:
    def __init__(
        self,
        agents: list[Agent],
        *,
        url: str | None = None,
        key: str | None = None,
        concurrency: int = 10,
        drain_seconds: float = 30,
        version: str | None = None,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._agents = agents_by_name(agents)
        self._http = Http(url or url_of_environment(), key or os.environ.get("RIVULET_WORKER_KEY"), on_retry=self._log_retry)
        self._calls = ApiCalls(self._http)
        self._concurrency = concurrency
        self._drain_seconds = drain_seconds
        self._version = version
        # By turn and claim: a turn that parks may be claimed again before its old run has ended, and the turns of one call share their claim.
        self._running: dict[tuple[str, str], tuple[RunningTurn, asyncio.Task[None]]] = {}
        self._logs_again_at = 0.0
        self._stopping = asyncio.Event()
        self._freed = asyncio.Event()

    def stop(self) -> None:
        """Claims no more. Turns that run get `drain_seconds` to end; then they are released, and another worker runs them."""
        self._stopping.set()

    async def run(self) -> None:
        terms = await self._hello()
        logger.info("worker is ready", extra={"worker": self.id, "agents": list(self._agents)})
        every = terms["heartbeatMs"] / 1000
        background = [asyncio.create_task(work) for work in (self._greet(every), self._beat(terms["heartbeatMs"]), self._claim(min(poll_ms, terms["maxWaitMs"])))]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait({*background, stopping}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            # Without heartbeats the turns lose their leases, so they are released at once.
            if background[1] not in done:
                await self._drain(background[2])
            for task in done - {stopping}:
                task.result()
        finally:
            self.stop()
            await self._release()
            for task in (*background, stopping):
                task.cancel()
            await asyncio.gather(*background, stopping, return_exceptions=True)
            self._http.close()

    async def _hello(self) -> dict[str, Any]:
        agents = [{"name": one.name, **one.settings} for one in self._agents.values()]
        body = {"protocol": protocol, "worker": self.id, "slots": self._concurrency, "agents": agents}
        return await self._calls.post("hello", {**body, **({"version": self._version} if self._version else {})})

    async def _greet(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            await self._hello()

    async def _beat(self, every_ms: int) -> None:
        while True:
            began = time.monotonic()
            # The newest claim of each turn.
            sent = {running.held["turn"]: running for running, _ in self._running.values()}
            turns = [{**running.held, "waiting": running.turn._waits.waiting} for running in sent.values()]
            news = await self._calls.post("heartbeat", {"worker": self.id, "turns": turns, "waitMs": min(poll_ms, every_ms)})
            for turn, running in sent.items():
                if turn in news["lost"]:
                    running.end("canceled" if turn in news["canceled"] else "lost")
                elif turn in news["answered"]:
                    running.turn._waits.answered()
            # A turn that is lost stays in the reply until it has ended here, and one with an answer until it has read it.
            if (news["lost"] or news["answered"]) and time.monotonic() - began < 0.05:
                await asyncio.sleep(0.05)

    async def _claim(self, wait_ms: int) -> None:
        names = list(self._agents)
        while not self._stopping.is_set():
            free = self._concurrency - len(self._running)
            if free <= 0:
                self._freed.clear()
                await self._freed.wait()
                continue
            # If the reply is lost, the call that is repeated gets the same turns.
            body = {"worker": self.id, "agents": names, "max": min(free, 100), "waitMs": wait_ms, "claimId": str(uuid.uuid4())}
            try:
                turns = (await self._calls.post("claim", body))["turns"]
            except RivuletError as error:
                if error.code != "unknown_agent":
                    raise
                await self._hello()
                continue
            for turn in turns:
                self._start(turn)

    def _start(self, claim: dict[str, Any]) -> None:
        running = RunningTurn(self._agents[claim["agent"]], claim, self._calls)
        before = [(other, task) for other, task in self._running.values() if other.held["turn"] == claim["turn"]]
        for other, _ in before:
            other.end("lost")
        self._running[claim["turn"], claim["claim"]] = (running, asyncio.create_task(self._run(running, [task for _, task in before])))

    async def _run(self, running: RunningTurn, before: list[asyncio.Task[None]]) -> None:
        try:
            if before:
                await asyncio.wait(before)
            await running.run()
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("could not finish the turn")
        finally:
            self._running.pop((running.held["turn"], running.held["claim"]), None)
            self._freed.set()

    async def _drain(self, claiming: asyncio.Task[None]) -> None:
        # A claim that is under way may bring turns until its connection is closed, so it ends by itself.
        deadline = time.monotonic() + self._drain_seconds
        while time.monotonic() < deadline and (self._running or not claiming.done()):
            await asyncio.wait({claiming, *(task for _, task in self._running.values())}, timeout=0.1)

    async def _release(self) -> None:
        for running, _ in list(self._running.values()):
            running.end("released")
        tasks = [task for _, task in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=15)

    def _log_retry(self, error: Exception) -> None:
        """Logs a failed call, and then none for a minute, because every call repeats until the API is back."""
        if time.monotonic() >= self._logs_again_at:
            self._logs_again_at = time.monotonic() + 60
            logger.warning("a call to the API failed and is repeated: %s", error, extra={"worker": self.id})


class JsonFormatter(logging.Formatter):
    """Log lines as JSON, with the ids of task and turn."""

    fields = ("task", "turn", "attempt", "agent", "worker", "agents")

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": round(record.created * 1000), "level": record.levelname.lower(), "msg": record.getMessage()}
        line.update({name: getattr(record, name) for name in self.fields if hasattr(record, name)})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def run(*agents: Agent, **options: Any) -> None:
    """Runs a worker until SIGTERM or SIGINT, with log lines as JSON on stderr."""
    if not logging.getLogger().handlers and not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logger.addHandler(handler)
        logger.setLevel(os.environ.get("LOG_LEVEL", "info").upper())
    asyncio.run(_run_until_signal(list(agents), options))


async def _run_until_signal(agents: list[Agent], options: dict[str, Any]) -> None:
    worker = Worker(agents, **options)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, worker.stop)
    await worker.run()
