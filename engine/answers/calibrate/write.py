"""A calibration as a heads.json."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.answers.calibrate.choose import Figures
from engine.answers.calibrate.run import Calibration
from engine.answers.heads import FILE, HeadsError, read_heads
from engine.answers.readouts import Readout

if TYPE_CHECKING:
    from engine.engine import Engine

KEPT = ("box", "zoom", "refuse_above", "choose", "words", "near", "max_keys", "skip_first_last", "skip_cells", "note")
"""Entries of a list that calibration does not choose: what stood there for the same weights stays."""


def heads_file(folder: Path) -> Path:
    """Where the lists of a checkpoint are looked for."""
    return folder / FILE


def write_heads(calibration: Calibration, engine: Engine, target: Path) -> None:
    """Write the chosen lists to ``target``. Other lists that stand there for the same weights stay.

    Raises:
        HeadsError: the file cannot be written.
    """
    known = _known(target, engine.info.content_hash)
    readouts = dict(known.get("readouts", {}))
    for name, readout in calibration.readouts.items():
        kept = {key: readouts[name][key] for key in KEPT if name in readouts and key in readouts[name]}
        readouts[name] = {**_entry(readout), **kept}
    whole = {
        "format": 1,
        "model": engine.info.name,
        "weights": engine.info.content_hash,
        "source": f"ignis calibrate: {calibration.scenes} drawn screens, {calibration.texts} made texts, seed "
        f"{calibration.seed}; figures of five folds",
        "calibration": {name: _figures(figures) for name, figures in calibration.figures.items()},
        "readouts": readouts,
    }
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        partial.write_text(_dumped(whole), encoding="utf-8")
        read_heads(partial).check(engine.loaded.config)
        partial.replace(target)
    except OSError as error:
        raise HeadsError(f"{target} cannot be written: {error.strerror or error}.") from None
    finally:
        partial.unlink(missing_ok=True)


def _known(target: Path, weights: str) -> dict[str, Any]:
    """What stands in the file already, if it is of the same weights."""
    try:
        known = read_heads(target).weights == weights
        return json.loads(target.read_text(encoding="utf-8")) if known else {}
    except HeadsError:
        return {}


def _entry(readout: Readout) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "over": readout.over,
        "prompt": list(readout.prompt),
        "heads": [list(head) for head in readout.heads],
        "scale": readout.scale,
        "combine": readout.combine,
        "decode": readout.decode,
    }
    if readout.anchor is not None:
        entry["anchor"] = list(readout.anchor)
    for key in ("cell", "baseline"):
        if getattr(readout, key) is not None:
            entry[key] = getattr(readout, key)
    entry["nothing"] = readout.nothing
    entry["found_threshold"] = readout.found_threshold
    return entry


def _figures(figures: Figures) -> dict[str, Any]:
    def short(value: float | None) -> float | None:
        return None if value is None else round(value, 4)

    return {
        "questions": figures.questions,
        "right": short(figures.right),
        "by chance": short(figures.chance),
        "folds": [short(share) for share in figures.folds],
        "absent": figures.absent,
        "absent refused": short(figures.absent_refused),
        "present refused": short(figures.present_refused),
    }


def _dumped(value: dict[str, Any]) -> str:
    """JSON with one line an entry; lists within an entry stay on its line."""
    top = [f" {json.dumps(key)}: {json.dumps(part, ensure_ascii=False)}" for key, part in value.items()]
    lists = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"   {json.dumps(key)}: {json.dumps(part, ensure_ascii=False)}" for key, part in entry.items())
        + "\n  }"
        for name, entry in value["readouts"].items()
    ]
    top[-1] = ' "readouts": {\n' + ",\n".join(lists) + "\n }"
    return "{\n" + ",\n".join(top) + "\n}\n"
