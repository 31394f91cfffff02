"""Rivulet: agents as asynchronous workers, streamed live. `rivulet.agent` declares one, `rivulet.run` runs it, and `rivulet.Client` calls it."""
from .agent import Agent, agent
from .client import Client, Event, Result, text_of
from .errors import RivuletError
from .messages import Message, Sent
from .testing import TestTurn, test_turn
from .turn import Turn
from .updates import DeltaAccumulator, custom, delta, done, full, start, text, tool_request, tool_response
from .waits import Answer, Child
from .webhooks import verify_webhook
from .worker import JsonFormatter, Worker, run

__all__ = [
    "Agent", "Answer", "Child", "Client", "DeltaAccumulator", "Event", "JsonFormatter", "Message", "Result", "RivuletError", "Sent",
    "TestTurn", "Turn", "Worker", "agent", "custom", "delta", "done", "full", "run", "start", "test_turn", "text", "text_of",
    "tool_request", "tool_response", "verify_webhook",
]  # fmt: skip
__version__ = "0.2.0"
