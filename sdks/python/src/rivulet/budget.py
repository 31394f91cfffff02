"""What a turn has used, and whether the task may use more."""
from __future__ import annotations

from typing import Any

from .errors import RivuletError


class Budget:
    def __init__(self, claim: dict[str, Any]) -> None:
        self.used: dict[str, float] = {}
        self._is_over: bool = claim.get("isOverBudget", False)

    def count(self, used: dict[str, float]) -> None:
        for name, tokens in used.items():
            self.used[name] = self.used.get(name, 0) + tokens

    def learn(self, result: dict[str, Any]) -> None:
        """The API reports it with the result of a call."""
        self._is_over = self._is_over or result.get("isOverBudget", False)

    def check(self) -> None:
        if self._is_over:
            raise RivuletError("budget_exceeded", "The task has used its budget")
