"""The one error of this package: a code for programs, and a message that viewers may read."""
from __future__ import annotations

from typing import Any


class RivuletError(Exception):
    """Raise it in an agent to fail the turn with this code and this message. Viewers do not get the text of any other exception."""

    def __init__(self, code: str, message: str, status: int | None = None, retry_after: float = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.retry_after = retry_after


def failure_of(error: BaseException) -> dict[str, str]:
    """The failure as viewers get it."""
    if isinstance(error, RivuletError):
        return {"code": error.code, "message": error.message[:2000]}
    return {"code": "agent_error", "message": "The agent failed"}


def detail_of(error: BaseException) -> dict[str, Any]:
    """The text of the exception, for callers with a key and for the log, where viewers get another one."""
    text = (str(error) or type(error).__name__)[:2000]
    return {} if isinstance(error, RivuletError) else {"detail": text}
