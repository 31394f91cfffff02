"""Declares agents, and runs the handler of one for a turn."""
from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from dataclasses import dataclass
from typing import Any, Callable

from .errors import RivuletError, detail_of, failure_of
from .messages import Places, iterate
from .turn import Calls, Turn
from .updates import given
from .writer import TurnLost

Handler = Callable[[Turn], Any]
logger = logging.getLogger("rivulet")


@dataclass(frozen=True)
class Agent:
    name: str
    handler: Handler
    settings: dict[str, Any]


def agent(
    name: str,
    *,
    description: str = "",
    params: dict[str, Any] | None = None,
    timeout: float | None = None,
    max_attempts: int | None = None,
) -> Callable[[Handler], Agent]:
    """Declares an agent: an async function that sends its output, or an async generator that yields updates. `params` is a JSON Schema."""
    timeout_ms = None if timeout is None else round(timeout * 1000)
    settings = {"description": description, **given(params=params, timeoutMs=timeout_ms, maxAttempts=max_attempts)}
    return lambda handler: Agent(name, handler, settings)


class RunningTurn:
    """A turn from its claim to its end. It ends once: finished, parked, released, canceled or lost."""

    def __init__(self, own: Agent, claim: dict[str, Any], calls: Calls) -> None:
        about = {"task": claim["task"]["id"], "turn": claim["number"], "attempt": claim["attempt"], "agent": own.name}
        self._agent = own
        self._calls = calls
        self._log = logging.LoggerAdapter(logger, about)
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.turn = Turn(claim, calls, self.end, self._log)
        self.held = self.turn._held

    def end(self, how: str) -> None:
        """The handler is canceled, and nothing that it says arrives any more."""
        if not self._over.done():
            self.turn.over = how
            self._over.set_result(how)

    async def run(self) -> str:
        self._log.debug("turn claimed")
        handler = asyncio.ensure_future(self._handle())
        left = max(0.0, self.turn._claim["timeLeftMs"] / 1000)
        await asyncio.wait({handler, self._over}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if self._over.done() and not handler.done():
            return await self._leave(handler, self._over.result())
        error: BaseException | None
        if handler.done():
            error = asyncio.CancelledError("The handler canceled itself") if handler.cancelled() else handler.exception()
        else:
            error = RivuletError("deadline_exceeded", "The turn exceeded its deadline")
            await self._cancel(handler)
        if isinstance(error, TurnLost):
            return await self._leave(handler, "lost")
        return await self._finish(error)

    async def _handle(self) -> None:
        running = self._agent.handler(self.turn)
        if inspect.isasyncgen(running):
            places = Places(self.turn)
            async for update in iterate(running):
                await places.write(update)
            return
        returned = await running if inspect.isawaitable(running) else running
        if returned is not None:
            kind = type(returned).__name__
            raise RivuletError("bad_call", f"Agent {self._agent.name} returned {kind}; a handler yields or sends its output and returns nothing")

    async def _leave(self, handler: asyncio.Future[None], how: str) -> str:
        self.turn._writer.stop(TurnLost(how))
        await self._cancel(handler)
        if how == "released":
            await self._calls.post("release", dict(self.held))
        self._log.info("turn %s", how)
        return how

    async def _cancel(self, handler: asyncio.Future[None]) -> None:
        """A handler that ignores it is abandoned."""
        handler.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait({handler}, timeout=10)
        if handler.done() and not handler.cancelled():
            handler.exception()

    async def _finish(self, error: BaseException | None) -> str:
        while True:
            try:
                await self.turn._writer.drain()
            except TurnLost:
                return "lost"
            except Exception as failure:
                error = error or failure
            outcome: dict[str, Any] = {"status": "completed"}
            if error is not None:
                self._log.warning("turn failed", exc_info=error)
                outcome = {"status": "failed", "error": failure_of(error), **detail_of(error)}
            used = {"usage": self.turn._budget.used} if self.turn._budget.used else {}
            body = {**self.held, "last": self.turn._writer.last, **outcome, **used}
            result = await self._calls.post("finish", body)
            if result["result"] != "gap":
                self.turn._writer.stop(TurnLost("ended"))
                self._log.info("turn %s: %s", outcome["status"], result["result"])
                return outcome["status"]
            self.turn._writer.move_to(result)
