"""What can be said of ``ignis bench gpu`` without a card: its words, its arithmetic, and the reading kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ignis_desktop.bench.gpu.card import Card
from ignis_desktop.bench.gpu.case import Case, relative_error, run_case
from ignis_desktop.bench.gpu.kernels import floor_microseconds, kernels_json, kernels_table
from ignis_desktop.bench.gpu.predict import CARDS, predict, predict_table
from ignis_desktop.cli import entry
from kernels.fused.read import MARK, read_all

CARD = Card("A card", "90", 132, 140.0, "1.2", read_bytes=4e12, copy_bytes=4e12, matrix_flops=8e14)


def test_without_a_card_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    assert entry.run(["bench", "gpu"]) == 1
    assert "There is no CUDA card here" in capsys.readouterr().err


def test_an_unknown_area_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["bench", "gpu", "--only", "linears"]) == 2
    assert "linear, attention, deltanet, elementwise, sampling" in capsys.readouterr().err


def test_errors_are_relative_and_nan_is_never_right() -> None:
    expected = torch.tensor([3.0, 4.0])
    assert relative_error(torch.tensor([3.0, 4.5]), expected) == pytest.approx(0.1)
    assert relative_error(torch.tensor([3.0, float("nan")]), expected) == float("inf")
    with pytest.raises(ValueError, match=r"returned \[1\], the reference \[2\]"):
        relative_error(torch.zeros(1), expected)


def test_a_kernel_that_fails_is_a_row_of_the_table() -> None:
    def broken(_variant: int) -> tuple[object, object]:
        raise RuntimeError("an illegal memory access")

    case = Case("linear", "a product", broken, 1e-3, bytes=4_000_000, flops=1000)  # type: ignore[arg-type]
    result = run_case(case, timed=False)
    assert not result.right
    assert floor_microseconds(result, CARD) == pytest.approx(1.0)
    text = kernels_table([result], CARD)
    assert "WRONG" in text
    assert "an illegal memory access" in text
    assert kernels_json([result], CARD)[0]["fault"].startswith("RuntimeError")


def test_a_wrong_kernel_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def make(_variant: int) -> tuple[object, object]:
        out = torch.ones(3)

        def launch() -> Tensor:
            return out

        def reference() -> Sequence[Tensor]:
            return [torch.tensor([1.0, 1.0, 1.1])]

        return launch, reference

    case = Case("linear", "a sum", make, 1e-3)  # type: ignore[arg-type]
    result = run_case(case, timed=False)
    assert result.error == pytest.approx(0.0563, abs=1e-3)
    assert not result.right


def test_predictions_scale_by_what_bounds_a_measure() -> None:
    rows = {
        "round_1x1_4096": {"name": "round", "samples": [4.0]},
        "prefill_8192": {"name": "prompt", "samples": [0.8]},
        "readout": {"name": "readout", "samples": [1.0, 2.0]},
    }
    found = predict({"card": CARD.json(), "rows": rows}, "rtx5090")
    assert [row["key"] for row in found] == ["round_1x1_4096", "prefill_8192"]
    assert found[0]["predicted_ms"] == pytest.approx(4.0 * 4e12 / CARDS["rtx5090"].read_bytes)
    assert found[1]["predicted_ms"] == pytest.approx(800.0 * 8e14 / CARDS["rtx5090"].matrix_flops)
    assert "RTX 5090, predicted" in predict_table(found, "rtx5090")


def test_all_of_the_memory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Triton's interpreter."""
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    for place in (0, 8191, 3 * 8192 - 1):
        source, out = torch.zeros(3 * 8192, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        read_all(source, out)
        assert out.item() == 0
        source[place] = MARK
        read_all(source, out)
        assert out.item() == 1
    with pytest.raises(ValueError, match="a multiple of 8192"):
        read_all(torch.zeros(5, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))


def test_kept_results_are_whole() -> None:
    """What RESULTS.md speaks of."""
    kept = json.loads((Path(__file__).parent / "results" / "gpu-2026-12-01.json").read_text(encoding="utf-8"))
    assert all(kernel["right"] for kernel in kept["kernels"])
    assert kept["rows"]["round_1x1_4096"]["ratio"] == pytest.approx(1.41, abs=0.01)
