"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from engine import EngineConfig


@dataclass(frozen=True)
class EngineOptions:
    """What the command line says about the engine; None leaves ``EngineConfig``'s default."""

    model: str | None = None
    device: str | None = None
    lanes: int | None = None
    max_context: int | None = None
    threads: int | None = None
    kv_format: str | None = None
    kv_tokens: int | None = None
    yarn: float | None = None
    headroom: int | None = None
    memory_budget: int | None = None
    host_tier: int | None = None
    disk_tier: str | None = None
    draft_tokens: int | None = None

    @property
    def any_given(self) -> bool:
        return self != EngineOptions()

    def config(self) -> EngineConfig:
        """Raises ``EngineError`` when a value is out of range."""
        from engine import EngineConfig

        given: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        for name in ("model", "disk_tier"):
            if name in given:
                given[name] = Path(given[name]).expanduser()
        return EngineConfig(**given)


@dataclass(frozen=True)
class ConnectionOptions:
    """Where a command's answers come from: a running instance, or an engine of its own."""

    connect: str | None
    engine: EngineOptions


class TokenCount(click.ParamType):
    """A number of tokens; ``32K`` is 32 × 1,024."""

    name = "tokens"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        text = str(value).strip().upper()
        factor = {"K": 1024, "M": 1024 * 1024}.get(text[-1:], 1)
        digits = text[:-1] if factor > 1 else text
        if not digits.isdecimal() or int(digits) == 0:
            self.fail(f"{value!r} is no number of tokens; write 8192 or 8K.", param, context)
        return int(digits) * factor


class Size(click.ParamType):
    """A number of bytes; ``32GiB`` and ``32G`` are 32 × 1,024³, ``32GB`` is 32 × 1,000³."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:([KMGT])(I?B)?|B)?", str(value).strip().upper())
        if found is None:
            self.fail(f"{value!r} is no size; write 512MiB or 32GiB.", param, context)
        number, unit, suffix = found.groups()
        base = 1000 if suffix == "B" else 1024
        return round(float(number) * base ** (" KMGT".index(unit) if unit else 0))


def _model(command: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option("--model", metavar="NAME|DIR", help="Model to load (ignis models list).  [default: Ember]")
    return option(command)


def _device(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to compute.")(command)


def _threads(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads.")(command)


_ENGINE_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--lanes", type=click.IntRange(1, 16), help="Requests served at the same time."),
    click.option("--max-context", type=TokenCount(), help="Tokens one lane may hold, e.g. 8K."),
    click.option("--yarn", type=click.FloatRange(1, 8), help="Stretch contexts by this factor (YaRN)."),
    click.option("--kv-format", type=click.Choice(["auto", "bf16", "fp8", "q2"]), help="How keys and values are kept."),
    click.option("--kv-tokens", type=TokenCount(), help="Tokens all lanes hold together.  [default: what fits]"),
    click.option(
        "--headroom",
        "--vram-headroom",
        "headroom",
        type=Size(),
        help="Free memory left to other programs.  [default: 1GiB on a GPU, else 512MiB]",
    ),
    click.option("--memory-budget", type=Size(), help="What the engine may hold.  [default: what is free]"),
    click.option(
        "--host-tier", type=Size(), help="Host memory for kept state.  [default: 2GiB beside a GPU, else 256MiB]"
    ),
    click.option("--disk-tier", metavar="DIR", help="Folder for kept state.  [default: off]"),
    click.option("--draft-tokens", type=click.IntRange(0, 15), help="Tokens drafted for each lane and round."),
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--model --device --lanes --max-context …``, given to the command as ``engine_options``."""

    def wrapped(**given: Any) -> Any:
        options = EngineOptions(**{field.name: given.pop(field.name) for field in fields(EngineOptions)})
        return command(engine_options=options, **given)

    _adopt(wrapped, command)
    for option in reversed(_ENGINE_OPTIONS):
        wrapped = option(wrapped)
    return _model(_device(_threads(wrapped)))


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--connect --model --device --threads``, given to the command as ``connection``."""

    def wrapped(**given: Any) -> Any:
        engine = EngineOptions(**{name: given.pop(name) for name in ("model", "device", "threads")})
        connection = ConnectionOptions(given.pop("connect"), engine)
        if connection.connect and engine.any_given:
            raise click.UsageError("--connect uses what is running; leave out --model, --device and --threads.")
        return command(connection=connection, **given)

    _adopt(wrapped, command)
    wrapped = click.option(
        "--connect",
        metavar="URL",
        envvar="IGNIS_URL",
        show_envvar=True,
        help="Use the instance at this address; its key is read from IGNIS_API_KEY.",
    )(wrapped)
    return _model(_device(_threads(wrapped)))


def _adopt(wrapped: Callable[..., Any], command: Callable[..., Any]) -> None:
    """Name, help and the parameters declared so far."""
    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
