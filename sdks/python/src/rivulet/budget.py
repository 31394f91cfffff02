"""What a turn has used, and whether the task may use more: the API reports it, and a turn counts what it has used since its claim."""
from __future__ import annotations

import re
from typing import Any

from .errors import RivuletError

Usage = dict[str, float]


class Budget:
    def __init__(self, claim: dict[str, Any]) -> None:
        left = claim.get("budget") or {}
        # Beside the usage that messages carry.
        self.used: Usage = {}
        self._is_over: bool = claim.get("isOverBudget", False)
        self._tokens: float | None = left.get("tokens")
        self._usd: float | None = left.get("usd")
        self._prices: dict[str, dict[str, Any]] = left.get("prices") or {}

    def count(self, used: Usage) -> None:
        for name, tokens in used.items():
            self.used[name] = self.used.get(name, 0) + tokens

    def spend(self, used: Usage, model: str | None) -> None:
        """Counts at once what the API counts when it is stored."""
        if self._tokens is not None:
            self._tokens -= max(0, used.get("totalTokens", used.get("inputTokens", 0) + used.get("outputTokens", 0)))
        if self._usd is not None:
            self._usd -= max(0, cost_of(self._prices, model, used))
        self._is_over = self._is_over or any(left is not None and left <= 0 for left in (self._tokens, self._usd))

    def learn(self, result: dict[str, Any]) -> None:
        self._is_over = self._is_over or result.get("isOverBudget", False)

    def check(self) -> None:
        if self._is_over:
            raise RivuletError("budget_exceeded", "The task has used its budget")


def cost_of(prices: dict[str, dict[str, Any]], model: str | None, used: Usage) -> float:
    """In US dollars; 0 for a model without a price."""
    # A provider may call a model by its date.
    dated = re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$", "", model or "")
    price = prices.get(model or "") or prices.get(dated)
    if price is None:
        return 0
    read, written = used.get("cacheReadTokens", 0), used.get("cacheWriteTokens", 0)
    tokens = used.get("inputTokens", 0)
    uncached = tokens if price.get("cacheIsExtra") else max(0, tokens - read - written)
    cached = read * price.get("cachedInput", price["input"]) + written * price.get("cacheWrite", price["input"])
    return (uncached * price["input"] + cached + used.get("outputTokens", 0) * price["output"]) / 1_000_000
