"""What a class of requests got: latencies, tokens, refusals, reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ignis_desktop.bench.client import Outcome
from ignis_desktop.bench.report import milliseconds
from ignis_desktop.bench.stats import Spread

HEADERS = (
    "class",
    "requests",
    "refused",
    "failed",
    "ttft p50",
    "p95",
    "p99 ms",
    "gap p50",
    "p95",
    "p99 ms",
    "tokens/s",
    "reused",
    "cached tokens",
)


@dataclass(frozen=True)
class ClassSummary:
    """Of the requests of one class, over ``seconds``."""

    name: str
    requests: int
    ok: int
    refused: int
    failed: int
    left: int
    """Ended by the generator itself."""
    first: Spread | None
    """Time to first token, from when each was due."""
    gap: Spread | None
    """Between two pieces of one answer."""
    output_tokens: int
    prompt_tokens: int
    cached_tokens: int
    hits: int
    """Answers whose prompt was not all read."""
    seconds: float
    errors: tuple[str, ...]

    @classmethod
    def of(cls, name: str, outcomes: Sequence[Outcome], seconds: float) -> ClassSummary:
        done = [outcome for outcome in outcomes if outcome.status == "ok"]
        return cls(
            name=name,
            requests=len(outcomes),
            ok=len(done),
            refused=sum(outcome.status == "refused" for outcome in outcomes),
            failed=sum(outcome.status == "failed" for outcome in outcomes),
            left=sum(outcome.status == "left" for outcome in outcomes),
            first=Spread.of([outcome.first_seconds for outcome in done if outcome.first_seconds is not None]),
            gap=Spread.of([gap for outcome in done for gap in outcome.gaps]),
            output_tokens=sum(outcome.output_tokens for outcome in done),
            prompt_tokens=sum(outcome.prompt_tokens for outcome in done),
            cached_tokens=sum(outcome.cached_tokens for outcome in done),
            hits=sum(outcome.cached_tokens > 0 for outcome in done),
            seconds=seconds,
            errors=tuple(sorted({outcome.error for outcome in outcomes if outcome.status in ("refused", "failed")})),
        )

    @property
    def tokens_per_second(self) -> float:
        return self.output_tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def hit_rate(self) -> float:
        return self.hits / self.ok if self.ok else 0.0

    @property
    def cached_share(self) -> float:
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def row(self) -> list[str]:
        first = [self.first.p50, self.first.p95, self.first.p99] if self.first else [None] * 3
        gap = [self.gap.p50, self.gap.p95, self.gap.p99] if self.gap else [None] * 3
        return [
            self.name,
            str(self.requests),
            str(self.refused),
            str(self.failed),
            *map(milliseconds, first),
            *map(milliseconds, gap),
            f"{self.tokens_per_second:.1f}",
            f"{self.hit_rate:.0%}",
            f"{self.cached_share:.0%}",
        ]

    def json(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "ok": self.ok,
            "refused": self.refused,
            "failed": self.failed,
            "left": self.left,
            "ttft_ms": self.first.json(1e3) if self.first else None,
            "inter_token_ms": self.gap.json(1e3) if self.gap else None,
            "tokens_per_second": round(self.tokens_per_second, 2),
            "output_tokens": self.output_tokens,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "reuse_hit_rate": round(self.hit_rate, 4),
            "errors": list(self.errors),
        }


def by_class(outcomes: Sequence[Outcome], seconds: float) -> dict[str, ClassSummary]:
    """A summary for each class that had requests, interactive first."""
    names = [name for name in ("interactive", "agent") if any(o.request_class == name for o in outcomes)]
    return {name: ClassSummary.of(name, [o for o in outcomes if o.request_class == name], seconds) for name in names}
