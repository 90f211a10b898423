"""The plan for a card that is not there, against a calculation by hand from the model's published sizes."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoint.geometries import geometry
from engine.config import EngineConfig
from engine.memory.plan import Layout, Memory, PlanError, plan_vram, published

MIB, GIB = 1 << 20, 1 << 30
QWEN = geometry("qwen3.8-27b")


def plan(config: EngineConfig, *, total: int = 32 * GIB, other: int = 0, host: Memory | None = None) -> Layout:
    model = QWEN.config
    return plan_vram(
        model,
        config,
        published(model),
        total=total,
        free=total - other,
        pixels=QWEN.max_pixels,
        drafter=QWEN.drafter,
        host=host,
    )


def lines(layout: Layout) -> dict[str, int]:
    return {line.name: line.bytes for line in layout.plan.lines}


def check(layout: Layout, hand: dict[str, float]) -> None:
    """Every line within 1 % of the figure found by hand, and no line that has none."""
    found = lines(layout)
    assert found.keys() == hand.keys()
    for name, size in hand.items():
        assert found[name] == pytest.approx(size, rel=0.01), name


# By hand, from the sizes of Qwen3.8-27B: 64 layers of 5,120, of which 16 full attention (24 query and 4 key heads ×
# 256) and 48 Gated DeltaNet (16 key and 48 value heads × 128); MLP 17,408; 248,320 tokens; vision 27 layers of 1,152.
FULL, GDN = 16, 48
MLP = 3 * 5120 * 17408
ATTENTION = 5120 * (2 * 24 * 256 + 4 * 256 + 4 * 256) + 24 * 256 * 5120  # query and gate, keys, values, output
DELTANET = 5120 * (2 * 16 * 128 + 48 * 128) + 5120 * 48 * 128 + 48 * 128 * 5120  # q ‖ k ‖ v, z, output
PROJECTIONS = 64 * MLP + FULL * ATTENTION + GDN * DELTANET  # 24.3e9
HEAD = 248320 * 5120
SMALL = GDN * (2 * 48 * 5120 + 4 * (2 * 16 * 128 + 48 * 128))  # in_proj_a and in_proj_b, convolution
VISION = 27 * (4 * 1152 * 1152 + 2 * 1152 * 4304) + 1152 * 1536 + 2304 * 1152 + 4608 * (4608 + 5120)
WEIGHTS = PROJECTIONS * 0.5625 + HEAD * 1 + (HEAD + SMALL + VISION) * 2

STATE = 48 * 48 * 128 * 128 * 4 + 48 * 10240 * 3 * 2  # 144 MiB recurrent, 2.8 MiB convolution taps
BF16_TOKEN = 16 * 4 * 2 * 256 * 2  # 65,536
PATCH = (6 * 1152 + 72) * 2  # residuals and norms, q ‖ k ‖ v, rotary angles
WORKSPACE = 4096 * 4096 / (16 * 16) * PATCH
CARRIED = 5 * 5120 + 2 * 17408 + 64 + 2 * 10240 + 6144 + 96 + 2 * 6144  # through a recurrent layer, BF16
TOKEN = CARRIED * 2 + (9 * 6144 + 3 * 48 * 64) * 4  # and its keys, queries and values in all their forms
PICTURES = 3 * 16384 * 5120 * 2  # two kept, one under way
# What is unpacked of a matrix, short chunks, cuBLAS, small tensors; and for eight lanes, what torch rounds up: two
# segments of 20 MiB for the chunks' columns and two penalties, 22.5 MiB of taps and 873 of workspace to even ones.
BESIDE = 96 * MIB * 2 + 512 * 5120 * 2 + 32 * MIB + 36 * MIB
RUNTIME = BESIDE + 40 * MIB - 512 * 5120 * 2 - 2 * 8 * 248320 * 4 + (1.5 + 1 + 2) * MIB


def test_weights_are_the_published_sizes() -> None:
    assert pytest.approx(24.3e9, rel=0.01) == PROJECTIONS
    assert pytest.approx(1.27e9, rel=0.01) == HEAD
    assert published(QWEN.config).bytes == pytest.approx(WEIGHTS, rel=0.001)
    assert published(QWEN.config).bytes == pytest.approx(17_724 * MIB, rel=0.01)  # a published plan's figure


def test_q2_on_32_gib_by_hand() -> None:
    """128K of context, 8 lanes, 2-bit keys and values, chunks of 1,024, no drafts, a headroom of 1 GiB."""
    layout = plan(EngineConfig(max_context=128 * 1024, lanes=8, kv_format="q2"))
    hand = {
        "weights": WEIGHTS,
        "context": (432 + 168) * MIB,
        "runtime": RUNTIME,
        "kv_window": 8 * (32 + 512 + 1024) * BF16_TOKEN,
        "lane_state": 8 * STATE,
        "workspace": WORKSPACE,
        "vision_cache": PICTURES,
        "sampling": 8 * 248320 * (2 * 4 + 1 / 8),
        "round": 8 * (128 * 1024 / 64 * 4 + 64 + 40),
        "graphs": 8 * 16 * MIB + 2 * 36 * 248320 * 4 + 56 * MIB,
        "verify": 0,
        "drafter": 0,
    }
    hand["kv_pool"] = 31 * GIB - sum(hand.values())
    check(layout, hand | {"retained": (8 + 16) * (STATE + (32 + 512) * BF16_TOKEN), "host_tier": 2 * GIB})
    page = 64 * 9216  # 64 tokens × 16 layers × 4 heads × (K, V) × 72 B
    assert lines(layout)["kv_pool"] == layout.pages * page
    assert 0 <= layout.plan.budget - layout.plan.total < page
    assert (layout.plan.capacity, layout.plan.budget, layout.plan.headroom) == (32 * GIB, 31 * GIB, GIB)
    assert layout.pages * 64 > 8 * 128 * 1024  # every lane may be full at once


def test_bf16_on_80_gib_by_hand() -> None:
    """The native context, 4 lanes, chunks of 2,048, a headroom of 2 GiB; other programs hold 3 GiB."""
    config = EngineConfig(lanes=4, kv_format="bf16", prefill_chunk=2048, headroom=2 * GIB, retained_limit=4)
    layout = plan(config, total=80 * GIB, other=3 * GIB)
    hand = {
        "weights": WEIGHTS,
        "context": (432 + 168) * MIB,
        "runtime": BESIDE + 20 * MIB - 512 * 5120 * 2 - 2 * 4 * 248320 * 4 + (0.75 + 2) * MIB,
        "kv_window": 0,
        "lane_state": 4 * STATE,
        "workspace": 2048 * TOKEN,
        "vision_cache": PICTURES,
        "sampling": 4 * 248320 * (2 * 4 + 1 / 8),
        "round": 4 * (262144 / 64 * 4 + 64 + 40),
        "graphs": 4 * 16 * MIB + 2 * 10 * 248320 * 4 + 56 * MIB,
        "verify": 0,
        "drafter": 0,
    }
    hand["kv_pool"] = (80 - 3 - 2) * GIB - sum(hand.values())
    check(layout, hand | {"retained": (4 + 4) * STATE, "host_tier": 2 * GIB})
    assert layout.plan.other == 3 * GIB
    assert layout.plan.budget == 75 * GIB


def test_fp8_with_drafts_by_hand() -> None:
    """40,960 tokens, 8 lanes, 7 drafts: rows of one byte a value and a float32 scale, the DFlash 2 drafter."""
    layout = plan(EngineConfig(max_context=40_960, lanes=8, kv_format="fp8", draft_tokens=7, host_tier=GIB))
    drafter_token = 5 * 2 * 8 * 128 * 2
    # A column records keys, values and two gates of each Gated DeltaNet layer, its convolution input, 5 hidden states.
    column = GDN * ((16 * 128 + 48 * 128 + 2 * 48) * 4 + 10240 * 2) + 5 * 5120 * 2
    hand = {
        "weights": WEIGHTS,
        "context": (432 + 168) * MIB,
        "runtime": RUNTIME,
        "kv_window": 0,
        "lane_state": 8 * STATE,
        "workspace": WORKSPACE,
        "vision_cache": PICTURES,
        "sampling": 8 * 248320 * (2 * 4 + 1 / 8),
        "round": 8 * (40_960 / 64 * 4 + 64 + 8 * 40),
        "graphs": 2 * 8 * 16 * MIB + 2 * 36 * 8 * 248320 * 4 + 56 * MIB,
        "verify": 8 * 8 * column,
        "drafter": 3.85e9 + 8 * (2048 + 8) * drafter_token,
    }
    hand["kv_pool"] = 31 * GIB - sum(hand.values())
    window = 2048 * drafter_token
    check(layout, hand | {"retained": (8 + 16) * (STATE + window), "host_tier": GIB})
    assert lines(layout)["kv_pool"] == layout.pages * 64 * (16 * 4 * 2 * (256 + 4))


def test_two_bits_keep_an_exact_window() -> None:
    """The first 32 tokens, the last 512 and the chunk being written, and the two former with every kept state."""
    layout = plan(EngineConfig(max_context=40_960, lanes=8, kv_format="q2"))
    found = lines(layout)
    assert found["kv_window"] == 8 * (32 + 512 + 1024) * BF16_TOKEN
    assert found["retained"] == pytest.approx((8 + 16) * (STATE + (32 + 512) * BF16_TOKEN), rel=1e-3)


def test_published_prices_of_a_token() -> None:
    for name, size in (("bf16", 65_536), ("q2", 9_216)):
        layout = plan(EngineConfig(max_context=4096, kv_format=name))  # type: ignore[arg-type]
        assert lines(layout)["kv_pool"] == layout.pages * 64 * size


def test_yarn_reaches_512k() -> None:
    config = EngineConfig(max_context=512 * 1024, yarn=2, kv_format="q2", lanes=4)
    assert plan(config).max_context == 524_288
    with pytest.raises(PlanError, match=r"--yarn 2 stretches it, or --max-context 262144 fits"):
        plan(EngineConfig(max_context=512 * 1024, kv_format="q2", lanes=4))


def test_refusal_names_bytes_and_options_that_fit() -> None:
    config = EngineConfig(max_context=256 * 1024, lanes=8, draft_tokens=7)
    with pytest.raises(PlanError) as caught:
        plan(config, other=2 * GIB)
    said, short = caught.value.message, caught.value.short
    assert f"need {short:,} bytes more than the {29 * GIB:,} that may be taken" in said
    assert f"other programs hold {2 * GIB:,}" in said
    assert plan(config, total=32 * GIB + short, other=2 * GIB).max_context == 256 * 1024
    with pytest.raises(PlanError):
        plan(config, total=32 * GIB + short - 1, other=2 * GIB)
    found = re.search(r"--max-context (\d+) fits, or --kv-format (\w+)", said)
    assert found is not None
    context = int(found[1])
    assert plan(replace(config, max_context=context), other=2 * GIB).max_context == context
    with pytest.raises(PlanError):
        plan(replace(config, max_context=context + 1024), other=2 * GIB)
    assert plan(replace(config, kv_format=found[2]), other=2 * GIB).kv_format == found[2]


def test_several_options_when_none_is_enough() -> None:
    with pytest.raises(PlanError, match=r"--lanes 1 with --max-context \d+ fits") as caught:
        plan(EngineConfig(max_context=256 * 1024, lanes=16), total=23 * GIB)
    context = int(re.search(r"--max-context (\d+) fits", caught.value.message)[1])  # type: ignore[index]
    assert plan(EngineConfig(max_context=context, lanes=1), total=23 * GIB).pages
    with pytest.raises(PlanError, match="only more memory or a smaller model helps"):
        plan(EngineConfig(max_context=4096, lanes=1), total=16 * GIB)
    with pytest.raises(PlanError, match="close other programs"):
        plan(EngineConfig(max_context=4096, lanes=1), total=32 * GIB, other=16 * GIB)


def test_pool_ends_where_nothing_could_fill_it() -> None:
    """Every lane, every parked lane and every kept state full."""
    layout = plan(EngineConfig(max_context=1024, lanes=2, retained_limit=3, kv_format="q2"), total=80 * GIB)
    assert layout.pages == (2 + 2 + 3) * 1024 // 64
    assert layout.plan.total < layout.plan.budget


def test_host_memory_bounds_what_is_pinned() -> None:
    config = EngineConfig(max_context=4096, lanes=1, retained_limit=1)
    shelf = 2 * STATE
    small = plan(config, host=Memory(4 * GIB, 4 * GIB))
    assert small.host_tier == GIB
    for host, tier in ((Memory(4 * GIB, 4 * GIB), GIB + 1), (Memory(64 * GIB, shelf + MIB), 2 * MIB)):
        with pytest.raises(PlanError, match=r"Pinned host memory .* lower --host-tier or --lanes"):
            plan(EngineConfig(max_context=4096, lanes=1, retained_limit=1, host_tier=tier), host=host)


def test_drafts_need_a_drafter() -> None:
    ember = geometry("ember")
    with pytest.raises(PlanError, match="no drafter for this model"):
        plan_vram(ember.config, EngineConfig(draft_tokens=7), published(ember.config), total=8 * GIB, free=8 * GIB)


def test_planning_imports_no_torch() -> None:
    code = "import engine.memory.plan, engine.checkpoint.geometries, sys; print('torch' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
