"""Head lists: which attention heads answer a question about a given set of weights, and how to ask them.

They live in ``heads.json`` beside a checkpoint, or under ``assets/heads/`` for models that do not ship with one::

    {"format": 1, "model": "Ember", "weights": CONTENT_HASH or null, "source": "…",
     "readouts": {"point": {"over": "image", "prompt": ["<|im_start|>", "user\\n", …, "{query}", "<|point|>"],
                            "heads": [[11, 0], …], "scale": 0.3333, "combine": "sum", …}}}

``prompt`` is a list of pieces, each tokenised on its own: a piece that is exactly a special token becomes that token, a
placeholder becomes what it stands for ({image}; {lines}: each line with its newline on its own; {text}; {query}), any
other piece is plain text. The heads are read at the last token, over the keys of {image}, {lines} or {text}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args

from engine.answers.readouts import Choose, Combine, Decode, Extent, Head, HeadsError, Nothing, Over, Readout, Zoom
from engine.config import ModelConfig

FILE = "heads.json"
BUNDLED = Path(__file__).resolve().parents[2] / "assets" / "heads"

Rule = TypeVar("Rule", Extent, Zoom)
_PLACEHOLDERS: dict[str, Over | None] = {"{image}": "image", "{lines}": "lines", "{text}": "text", "{query}": None}
_MAY_BE_ZERO = ("below", "runner_up", "grow_x", "grow_y")


@dataclass(frozen=True)
class HeadLists:
    """All readouts known for a set of weights."""

    model: str
    weights: str | None
    """Content hash of the weights the lists belong to; None: published for the model, unverified on these weights."""
    source: str
    readouts: Mapping[str, Readout]
    geometry: tuple[int, int, int] | None = None
    """(hidden size, layers, query heads) of the model that the lists were published for."""

    @property
    def locates(self) -> bool:
        """Whether one of them reads texts."""
        return any(readout.over != "image" for readout in self.readouts.values())

    def fits(self, config: ModelConfig) -> bool:
        text = config.text
        return self.geometry in (None, (text.hidden_size, text.num_layers, text.num_heads))

    def check(self, config: ModelConfig) -> None:
        """Raises ``HeadsError`` when a list names a layer or head that the model cannot be read at."""
        text = config.text
        for readout in self.readouts.values():
            for layer, head in readout.every_head:
                if layer not in text.full_layers or head >= text.num_heads:
                    raise HeadsError(
                        f"The head list {readout.name!r} names head {head} of layer {layer}; this model has heads 0 to "
                        f"{text.num_heads - 1} in the full-attention layers {', '.join(map(str, text.full_layers))}."
                    )


def load_heads(folder: Path, content_hash: str, config: ModelConfig) -> HeadLists | None:
    """The head lists for a checkpoint, or None when there are none for these weights.

    heads.json beside the checkpoint counts before those that ship. A list that belongs to other weights (replaced,
    requantised) is not an error: it does not count. One that belongs to no weights in particular counts when the model
    has its geometry. Raises ``HeadsError`` when a file is malformed or names heads the model does not have.
    """
    for file in [folder / FILE, *sorted(BUNDLED.glob("*.json"))]:
        if not file.is_file():
            continue
        lists = read_heads(file)
        if lists.weights == content_hash or (lists.weights is None and lists.fits(config)):
            lists.check(config)
            return lists
    return None


def read_heads(file: Path) -> HeadLists:
    """Parse and check one head-list file. Raises ``HeadsError``."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HeadsError(f"{file} cannot be read: {error}.") from None
    if not isinstance(raw, dict) or raw.get("format") != 1 or not isinstance(raw.get("readouts"), dict):
        raise HeadsError(f'{file} is not a head list: it needs "format": 1 and "readouts".')
    weights = raw.get("weights")
    if weights is not None and not isinstance(weights, str):
        raise HeadsError(f'{file}: "weights" must be a content hash or null.')
    readouts = {name: _Fields(file, name, entry).readout() for name, entry in raw["readouts"].items()}
    for readout in readouts.values():
        if readout.fallback is not None and readout.fallback not in readouts:
            raise HeadsError(f"{file}: {readout.name}.fallback names {readout.fallback!r}, which is not there.")
    return HeadLists(str(raw.get("model", "")), weights, str(raw.get("source", "")), readouts, _geometry(file, raw))


def _geometry(file: Path, raw: Mapping[str, Any]) -> tuple[int, int, int] | None:
    given = raw.get("geometry")
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != 3 or any(type(size) is not int for size in given):
        raise HeadsError(f'{file}: "geometry" must be [hidden size, layers, query heads] or null.')
    return given[0], given[1], given[2]


class _Fields:
    """Reads one readout's entry, naming file and field in every complaint."""

    def __init__(self, file: Path, name: str, entry: object) -> None:
        self._where = f"{file}: {name}"
        self._name = name
        if not isinstance(entry, dict):
            raise HeadsError(f"{self._where} must be an object.")
        self._entry: dict[str, Any] = entry

    def readout(self) -> Readout:
        combine: Combine = self._choice("combine", get_args(Combine))
        over: Over = self._choice("over", get_args(Over))
        scale = self._number("scale")
        if scale is None or scale <= 0:
            raise HeadsError(f"{self._where}.scale must be a positive number.")
        anchor = self._entry.get("anchor")
        if (combine == "anchor_set") != (anchor is not None):
            raise HeadsError(f"{self._where}: an anchor head goes with combine anchor_set, and only with it.")
        return Readout(
            name=self._name,
            over=over,
            prompt=self._prompt(over),
            heads=self._heads(),
            scale=scale,
            combine=combine,
            decode=self._choice("decode", get_args(Decode)),
            cell=self._natural("cell"),
            anchor=None if anchor is None else self._head(anchor),
            baseline=self._text("baseline"),
            max_keys=self._natural("max_keys"),
            skip_first_last=bool(self._entry.get("skip_first_last", False)),
            skip_cells=self._skip_cells(),
            fallback=self._text("fallback"),
            nothing=None if self._entry.get("nothing") is None else self._choice("nothing", get_args(Nothing)),
            found_threshold=self._number("found_threshold"),
            refuse_above=0.5 if (most := self._number("refuse_above")) is None else most,
            box=self._rule("box", Extent) or Extent(),
            zoom=self._rule("zoom", Zoom),
            choose=self._choice("choose", get_args(Choose)) if "choose" in self._entry else "heads",
            words=6.0 if (words := self._number("words")) is None else words,
            near=self._number("near") or 0.0,
            note=self._text("note") or "",
        )

    def _prompt(self, over: Over) -> tuple[str, ...]:
        pieces = self._entry.get("prompt")
        if not isinstance(pieces, list) or not all(isinstance(piece, str) and piece for piece in pieces):
            raise HeadsError(f"{self._where}.prompt must be a list of pieces of text.")
        spans = [_PLACEHOLDERS[piece] for piece in pieces if piece in _PLACEHOLDERS]
        if spans.count(None) != 1 or [span for span in spans if span is not None] != [over]:
            raise HeadsError(
                f"{self._where}.prompt must hold {{{over}}} and {{query}} once each, as pieces of their own."
            )
        return tuple(pieces)

    def _heads(self) -> tuple[Head, ...]:
        heads = self._entry.get("heads")
        if not isinstance(heads, list) or not heads:
            raise HeadsError(f"{self._where}.heads must be a list of [layer, head] pairs.")
        pairs = tuple(self._head(pair) for pair in heads)
        if len(set(pairs)) != len(pairs):
            raise HeadsError(f"{self._where}.heads names a head twice.")
        return pairs

    def _head(self, pair: object) -> Head:
        if not isinstance(pair, list) or len(pair) != 2 or any(type(value) is not int or value < 0 for value in pair):
            raise HeadsError(f"{self._where}: {pair!r} is not a [layer, head] pair.")
        return pair[0], pair[1]

    def _skip_cells(self) -> tuple[tuple[tuple[int, int], tuple[int, ...]], ...]:
        raw = self._entry.get("skip_cells", {})
        try:
            grids = {
                tuple(int(side) for side in grid.split("x")): tuple(map(int, cells)) for grid, cells in raw.items()
            }
        except (AttributeError, TypeError, ValueError):
            grids = {(): ()}
        if any(len(grid) != 2 for grid in grids):
            raise HeadsError(f'{self._where}.skip_cells must map "ROWSxCOLUMNS" to cell numbers.')
        return tuple(((grid[0], grid[1]), cells) for grid, cells in grids.items())

    def _rule(self, key: str, kind: type[Rule]) -> Rule | None:
        """A nested object of numbers above 0 (some may be 0), the fields of ``kind``."""
        raw = self._entry.get(key)
        if raw is None:
            return None
        known = {field.name: field for field in fields(kind)}
        if not isinstance(raw, dict) or not raw.keys() <= known.keys():
            raise HeadsError(f"{self._where}.{key} must be null or an object of {', '.join(known)}.")
        for name, value in raw.items():
            whole = known[name].type == "int"
            number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
            if not number or value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
                raise HeadsError(f"{self._where}.{key}.{name} must be a positive {'whole ' if whole else ''}number.")
        missing = [name for name, field in known.items() if field.default is MISSING and name not in raw]
        if missing:
            raise HeadsError(f"{self._where}.{key} needs {missing[0]}.")
        return kind(**raw)

    def _choice(self, key: str, allowed: tuple[Any, ...]) -> Any:
        value = self._entry.get(key)
        if value not in allowed:
            raise HeadsError(f"{self._where}.{key} must be one of {', '.join(allowed)}, not {value!r}.")
        return value

    def _number(self, key: str) -> float | None:
        value = self._entry.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise HeadsError(f"{self._where}.{key} must be a number or null.")
        return None if value is None else float(value)

    def _natural(self, key: str) -> int | None:
        value = self._entry.get(key)
        if value is not None and (type(value) is not int or value < 1):
            raise HeadsError(f"{self._where}.{key} must be a positive integer or null.")
        return value

    def _text(self, key: str) -> str | None:
        value = self._entry.get(key)
        if value is not None and not isinstance(value, str):
            raise HeadsError(f"{self._where}.{key} must be text or null.")
        return value


__all__ = ["BUNDLED", "FILE", "HeadLists", "HeadsError", "Readout", "load_heads", "read_heads"]
