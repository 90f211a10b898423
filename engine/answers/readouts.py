"""What a head list says about one kind of question: heads, prompt, and how their scores become an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.messages import EngineError

Head = tuple[int, int]
"""(layer, query head)."""
Over = Literal["image", "lines", "text"]
Combine = Literal["sum", "vote", "end", "anchor_set"]
Nothing = Literal["before", "after"]
Choose = Literal["heads", "labels"]
Decode = Literal["peak_3x3", "segment_mass", "segment_vote", "segment_end", "set_extent"]


@dataclass(frozen=True)
class Extent:
    """How a box is read from one map of attention (``engine.answers.regions.heat_extent``). The defaults suit what
    things on screens are: wider than high, most of them about a cell high."""

    share: float = 0.05
    """Cells with so much of the peak's attention belong to the thing."""
    grow_x: float = 4.0
    base_x: float = 1.0
    """The width is ``grow_x`` standard deviations of the attention and ``base_x`` cells."""
    grow_y: float = 0.0
    base_y: float = 0.8


@dataclass(frozen=True)
class Zoom:
    """When and how a second look is taken: at an enlarged crop of the picture around where the first look points."""

    factor: float
    """Most enlargement."""
    span: float = 0.4
    """Share of the picture's width and height that a crop shows."""
    least: int = 320
    """Pixels of the picture that a crop shows at least each way."""
    cells: int = 1000
    """Most cells of an enlarged crop: what it costs."""
    below: float = 1.0
    """A first look is followed by a second when it is less sure than this."""
    runner_up: float = 0.0
    """And by one at the second best place when it is less sure than this."""


class HeadsError(EngineError):
    """A heads.json that cannot be used: one sentence naming the file and the entry."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad_heads")


@dataclass(frozen=True)
class Readout:
    """One kind of answer read from attention."""

    name: str
    over: Over
    """What the keys belong to."""
    prompt: tuple[str, ...]
    heads: tuple[Head, ...]
    scale: float
    """Factor on q·k/√d of every head before they are combined."""
    combine: Combine
    """sum: scaled scores are added over heads, then softmax; vote: every head votes for its best segment; end: mass at
    a segment's end; anchor_set: the anchor head's region, refined by the set (``heads``)."""
    decode: Decode
    """peak_3x3: softmax, largest cell, expectation over the 3 × 3 cells around it; segment_mass: softmax, probability
    summed per segment; the others as answers.md describes for ``combine``."""
    cell: int | None = None
    """Pixels a side of one image key."""
    anchor: Head | None = None
    baseline: str | None = None
    """What replaces {query} for the scores that are subtracted; None: nothing is subtracted."""
    max_keys: int | None = None
    """Longest span the list was chosen on."""
    skip_first_last: bool = False
    """Heads whose best image cell is the first or the last one say nothing."""
    skip_cells: tuple[tuple[tuple[int, int], tuple[int, ...]], ...] = ()
    """((rows, columns), cells) that say nothing on a grid of that size."""
    fallback: str | None = None
    """Readout to use instead while this list is known to be incomplete."""
    nothing: Nothing | None = None
    """Where the key stands whose share says that nothing answers: just before or just after the span's keys; None:
    these weights do not know that something is absent."""
    found_threshold: float | None = None
    """Least confidence of a found answer, calibrated; None: not calibrated."""
    refuse_above: float = 0.5
    """Least share of the nothing key that says that nothing answers."""
    box: Extent = Extent()
    zoom: Zoom | None = None
    """None: pictures are looked at once."""
    choose: Choose = "heads"
    """What ranks the last few segments: these heads, or labels, where the model's labels are the better judge."""
    words: float = 6.0
    """What a segment that holds all of a question's own words gains beside the heads' standardised evidence: much for
    heads that know little."""
    near: float = 0.0
    """What words that are near the question's in the model's embeddings count beside its own. 0, for heads that know
    better: neither are they looked for, nor counts whether a row of a log is one that is asked about."""
    note: str = ""

    @property
    def every_head(self) -> tuple[Head, ...]:
        return (*self.heads, *([self.anchor] if self.anchor else []))

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers to read, ascending."""
        return tuple(sorted({layer for layer, _ in self.every_head}))

    def skipped(self, rows: int, columns: int) -> frozenset[int]:
        """Cells that say nothing when they are a head's best, on a grid of this size."""
        cells = {cell for grid, listed in self.skip_cells if grid == (rows, columns) for cell in listed}
        return frozenset(cells | ({0, rows * columns - 1} if self.skip_first_last else set()))
