"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

    @property
    def any_given(self) -> bool:
        return self != EngineOptions()

    def config(self) -> EngineConfig:
        """Raises ``EngineError`` when a value is out of range."""
        from engine import EngineConfig

        given: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if self.model is not None:
            given["model"] = Path(self.model).expanduser()
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


def _model(command: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option("--model", metavar="NAME|DIR", help="Model to load (ignis models list).  [default: Ember]")
    return option(command)


def _device(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to compute.")(command)


def _threads(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads.")(command)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--model --device --lanes --max-context --threads``, given to the command as ``engine_options``."""

    def wrapped(**given: Any) -> Any:
        names = ("model", "device", "lanes", "max_context", "threads")
        options = EngineOptions(**{name: given.pop(name) for name in names})
        return command(engine_options=options, **given)

    _adopt(wrapped, command)
    wrapped = click.option("--max-context", type=TokenCount(), help="Tokens one lane may hold, e.g. 8K.")(wrapped)
    wrapped = click.option("--lanes", type=click.IntRange(1, 16), help="Requests served at the same time.")(wrapped)
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
