"""The sampling parameters that chat and text completions share."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, field_validator

from engine.messages import SamplingParams
from ignis_desktop.server.bodies import Body, ClassedBody
from ignis_desktop.server.errors import bad_request

MAX_LOGPROBS = 20
SMALLEST_TOP_P = 1e-6
"""What 0 stands for: the likeliest token alone."""

StopString = Annotated[str, Field(min_length=1, max_length=1024)]


class StreamOptions(Body):
    include_usage: bool = False


class SamplingBody(ClassedBody):
    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    top_k: int | None = Field(None, ge=-1, description="0 or -1 keeps all")
    min_p: float | None = Field(None, ge=0, le=1)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0, le=10)
    seed: int | None = Field(None, ge=-(2**63), lt=2**64)
    stop: Annotated[list[StopString], Field(max_length=16)] = Field(default_factory=list)
    stop_token_ids: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=256)] = Field(default_factory=list)
    ignore_eos: bool = False
    n: int = Field(1, ge=1, description="answers to each prompt; as many as the engine has lanes")
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None

    @field_validator("stop", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        if value is None:
            return []
        return [value] if isinstance(value, str) else value

    @field_validator("n", "stream", "ignore_eos", "stop_token_ids", mode="before")
    @classmethod
    def _null_is_default(cls, value: Any, info: Any) -> Any:
        return cls.model_fields[info.field_name].get_default(call_default_factory=True) if value is None else value

    def sampling(self, defaults: SamplingParams, **fields: Any) -> SamplingParams:
        """``defaults`` with what the request sets. Raises ``ApiError`` 400 for what this server cannot do."""
        given = {
            name: value
            for name in (
                "temperature",
                "min_p",
                "presence_penalty",
                "frequency_penalty",
                "repetition_penalty",
            )
            if (value := getattr(self, name)) is not None
        }
        if self.top_p is not None:
            given["top_p"] = max(self.top_p, SMALLEST_TOP_P)
        if self.top_k is not None:
            given["top_k"] = max(self.top_k, 0)
        return replace(
            defaults,
            **given,
            seed=self.seed,
            stop=tuple(self.stop),
            stop_ids=tuple(self.stop_token_ids),
            ignore_eos=self.ignore_eos,
            logit_bias=self._biases(),
            **fields,
        )

    def check_siblings(self, lanes: int) -> None:
        """Raises ``ApiError`` 400 for more answers than there are lanes."""
        if self.n > lanes:
            raise bad_request(f"n: the engine has {lanes} lanes, so at most {lanes} answers, not {self.n}.", "n")

    def _biases(self) -> tuple[tuple[int, float], ...]:
        """By token id; the engine checks that there are such tokens."""
        biases: dict[int, float] = {}
        for key, bias in (self.logit_bias or {}).items():
            if not key.isdecimal() or not key.isascii() or len(key) > 9:
                raise bad_request("logit_bias: each key is a token's id in decimal digits.", "logit_bias")
            biases[int(key)] = bias
        return tuple(biases.items())

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage
