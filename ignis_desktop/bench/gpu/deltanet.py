"""Gated DeltaNet on the card: rounds of one and of several columns a lane, their folding, and prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from ignis_desktop.bench.gpu.case import Case, Launch
from ignis_desktop.bench.gpu.elementwise import layout_of, slotted
from kernels.fused.gdn import GdnLayer, GdnRecord, GdnState
from kernels.fused.gdn_chunk import gdn_chunk
from kernels.fused.gdn_fold import gdn_fold
from kernels.fused.gdn_inputs import gdn_inputs, gdn_inputs_reference
from kernels.fused.gdn_step import gdn_step
from kernels.fused.gdn_verify import gdn_verify
from kernels.fused.partial import Partial

LAYERS = 48
KEY_HEADS, HEADS, DIM = 16, 48, 128
CHANNELS = (2 * KEY_HEADS + HEADS) * DIM
OUT = CHANNELS + HEADS * DIM
STATE_BYTES = HEADS * DIM * DIM * 4
Made = tuple[Launch, Callable[[], Sequence[Tensor]]]


def cases(quick: bool) -> Iterator[Case]:
    for lanes, columns in [(1, 1), (8, 1)] if quick else [(1, 1), (2, 1), (4, 1), (8, 1), (1, 8), (8, 2), (8, 8)]:
        name = f"{lanes} × {columns}"
        count, variants = lanes * columns, max(2, 64 // lanes)
        product = count * OUT * 4
        conv_bytes = lanes * 2 * 3 * CHANNELS * 2
        yield Case(
            "deltanet",
            f"gdn_inputs {name}",
            partial(_inputs, lanes, columns),
            1e-3,
            bytes=count * CHANNELS * 8 + conv_bytes,
            variants=variants,
            per_round=LAYERS,
        )
        if columns == 1:
            yield Case(
                "deltanet",
                f"gdn_step {name}",
                partial(_step, lanes),
                3e-3,
                bytes=2 * lanes * STATE_BYTES + product,
                flops=lanes * HEADS * DIM * DIM * 7,
                variants=variants,
                per_round=LAYERS,
            )
        else:
            yield Case(
                "deltanet",
                f"gdn_verify {name}",
                partial(_verify, lanes, columns),
                3e-3,
                bytes=lanes * STATE_BYTES + 2 * product,
                flops=count * HEADS * DIM * DIM * 4,
                variants=variants,
                per_round=LAYERS,
            )
            yield Case(
                "deltanet",
                f"gdn_fold {name}",
                partial(_fold, lanes, columns),
                2e-5,
                bytes=LAYERS * lanes * (2 * STATE_BYTES + columns * (HEADS + KEY_HEADS) * DIM * 4),
                per_round=1,
            )
    yield Case("deltanet", "verified = one by one", partial(_same, 3, 8), 5e-5, hot=False)
    for count in (2048,) if quick else (512, 2048, 4096):
        yield Case(
            "deltanet",
            f"gdn_chunk {count}",
            partial(_chunk, [count]),
            3e-3,
            bytes=count * (OUT + HEADS * DIM) * 2 + 2 * STATE_BYTES,
            # Five products of a chunk with the state or within it, and half of the squares of the solution.
            flops=count * HEADS * 2 * (3 * DIM * DIM + 2 * 64 * DIM + 64 * 64),
            variants=1 if quick else 2,
        )
    yield Case("deltanet", "gdn_chunk 8 runs", partial(_chunk, [7, 640, 64, 1, 129, 500, 65, 642]), 3e-3)


def random_layer(
    device: torch.device | str, seed: int = 0, *, key_heads: int = KEY_HEADS, heads: int = HEADS, dim: int = DIM
) -> GdnLayer:
    """Parameters as trained models have them: decays from almost none to strong."""
    generator = torch.Generator(device).manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, generator=generator, device=device)

    return GdnLayer(
        conv=uniform(-0.5, 0.5, 4, (2 * key_heads + heads) * dim).bfloat16(),
        decay=-uniform(0.02, 8.0, heads),
        dt_bias=uniform(-5.0, 0.5, heads),
        norm=uniform(0.5, 1.5, dim),
        key_heads=key_heads,
        eps=1e-6,
    )


def random_state(
    layer: GdnLayer, slots: int, seed: int, *, layers: int | None = None, dtype: torch.dtype = torch.bfloat16
) -> GdnState:
    generator = torch.Generator(layer.conv.device).manual_seed(seed)

    def randn(*shape: int) -> Tensor:
        shape = shape if layers is None else (layers, *shape)
        return torch.randn(*shape, generator=generator, device=layer.conv.device)

    return GdnState(
        conv=randn(slots, 3, layer.channels).to(dtype),
        recurrent=0.3 * randn(slots, layer.value_heads, layer.key_dim, layer.value_dim),
    )


def random_inputs(layer: GdnLayer, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """q ‖ k ‖ v ‖ z [N, out] and b ‖ a [N, 2 Hv] in BF16; tokens resemble each other, so that deltas interact."""
    generator = torch.Generator(layer.conv.device).manual_seed(seed)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=layer.conv.device)

    inputs = randn(count, layer.out_features) + 0.7 * randn(1, layer.out_features)
    return inputs.bfloat16(), randn(count, 2 * layer.value_heads).bfloat16()


def exact(
    product: Tensor,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Sequence[int],
    bounds: Sequence[int],
    *,
    rounded: torch.dtype = torch.float64,
) -> tuple[Tensor, GdnState]:
    """The whole layer, token by token in float64: (y [N, Hv · Dv], the state after).

    Args:
        product: [N, q ‖ k ‖ v ‖ z].
        bounds: run r is columns [bounds[r], bounds[r + 1]) of the lane in ``slots[r]``.
        rounded: the type that q, k and v are rounded to after the convolution, as in a prompt.
    """
    share, dk = layer.value_heads // layer.key_heads, layer.key_dim
    x, z = product.double().split([layer.channels, layer.value_heads * layer.value_dim], dim=-1)
    x = x.to(state.conv.dtype).double()
    b, a = ba.double().chunk(2, dim=-1)
    beta, g = b.sigmoid(), layer.decay.double() * torch.nn.functional.softplus(a + layer.dt_bias.double())
    conv, recurrent = state.conv.clone(), state.recurrent.double()
    out = torch.zeros(len(x), layer.value_heads, layer.value_dim, dtype=torch.float64, device=x.device)
    for slot, begin, end in zip(slots, bounds, bounds[1:], strict=False):
        if begin == end:
            continue
        history = torch.cat([conv[slot].double(), x[begin:end]])
        y = sum(history[tap : tap + end - begin] * layer.conv[tap].double() for tap in range(4))
        y = torch.nn.functional.silu(torch.as_tensor(y))
        y = y.to(rounded).double()
        conv[slot] = history[-3:].to(conv.dtype)
        keys = layer.key_heads * dk
        q, k, v = y.split([keys, keys, y.shape[1] - 2 * keys], dim=-1)
        q, k = (part.unflatten(-1, (layer.key_heads, dk)).repeat_interleave(share, dim=1) for part in (q, k))
        q = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) * dk**-0.5
        k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
        v = v.unflatten(-1, (layer.value_heads, -1))
        s = recurrent[slot]
        for t in range(end - begin):
            s = s * g[begin + t].exp()[:, None, None]
            u = beta[begin + t, :, None] * (v[t] - torch.einsum("hkv,hk->hv", s, k[t]))
            s = s + k[t, :, :, None] * u[:, None]
            out[begin + t] = torch.einsum("hkv,hk->hv", s, q[t])
        recurrent[slot] = s
    norm = torch.rsqrt(out.square().mean(-1, keepdim=True) + layer.eps) * layer.norm.double()
    y = out * norm * torch.nn.functional.silu(z).unflatten(-1, (layer.value_heads, -1))
    return y.flatten(1), GdnState(conv, recurrent)


def _round(lanes: int, columns: int, seed: int) -> tuple[GdnLayer, GdnState, Tensor, Partial, Tensor]:
    layer = random_layer("cuda", seed)
    values, ba = random_inputs(layer, lanes * columns, seed)
    slots = torch.arange(lanes, dtype=torch.int32, device="cuda").flip(0).contiguous()
    return layer, random_state(layer, lanes, seed), slots, slotted(values, layout_of(OUT, 5120)), ba


def one_by_one_and_at_once(layer: GdnLayer, lanes: int, columns: int) -> tuple[tuple[Tensor, Tensor], ...]:
    """(Results, recurrent states after) of the same columns, in rounds of one and verified together and folded."""
    values, ba = random_inputs(layer, lanes * columns, 3)
    device = values.device
    state = random_state(layer, lanes, 5, layers=1)
    other = GdnState(state.conv.clone(), state.recurrent.clone())
    slots = torch.arange(lanes, dtype=torch.int32, device=device)
    of_lanes = torch.arange(lanes, device=device) * columns
    one = torch.empty(lanes * columns, layer.value_heads * layer.value_dim, device=device)
    for t in range(columns):
        product, gates = Partial.of(values[of_lanes + t]), ba[of_lanes + t]
        mixed = gdn_inputs(product, layer, state.layer(0), slots)
        one[of_lanes + t] = gdn_step(mixed, product, gates, layer, state.layer(0), slots, dtype=torch.float32)
    record = GdnRecord.reserve(layer, 1, lanes * columns, state.conv.dtype)
    product, of_layer = Partial.of(values), record.layer(0)
    mixed = gdn_inputs(product, layer, other.layer(0), slots, record=of_layer)
    together = gdn_verify(mixed, product, ba, layer, other.layer(0), slots, of_layer, dtype=torch.float32)
    gdn_fold(record, other, slots, torch.full_like(slots, columns), columns)
    return (one, together), (state.recurrent, other.recurrent)


def _same(lanes: int, columns: int, seed: int) -> Made:
    out, after = one_by_one_and_at_once(random_layer("cuda", seed), lanes, columns)
    return lambda: [out[1], after[1]], lambda: [out[0], after[0]]


def _inputs(lanes: int, columns: int, seed: int) -> Made:
    layer, state, slots, product, _ = _round(lanes, columns, seed)
    record = GdnRecord.reserve(layer, 1, lanes * columns, torch.bfloat16).layer(0) if columns > 1 else None
    own = GdnState(state.conv.clone(), state.recurrent)

    def reference() -> list[Tensor]:
        wide = GdnState(state.conv.double(), state.recurrent)
        recorded = GdnRecord.reserve(layer, 1, lanes * columns, torch.float64).layer(0) if columns > 1 else None
        product64 = Partial(product.sum().bfloat16().double())
        return [gdn_inputs_reference(product64, layer, wide, slots, record=recorded)]

    return lambda: gdn_inputs(product, layer, own, slots, record=record, dependent=True), reference


def _step(lanes: int, seed: int) -> Made:
    layer, state, slots, product, ba = _round(lanes, 1, seed)
    before = GdnState(state.conv.clone(), state.recurrent.clone())
    mixed = gdn_inputs(product, layer, state, slots)

    def launch() -> list[Tensor]:
        return [gdn_step(mixed, product, ba, layer, state, slots, dependent=True), state.recurrent]

    def reference() -> list[Tensor]:
        y, after = exact(product.sum(), ba, layer, before, slots.tolist(), range(lanes + 1))
        return [y, after.recurrent]

    return launch, reference


def _verify(lanes: int, columns: int, seed: int) -> Made:
    layer, state, slots, product, ba = _round(lanes, columns, seed)
    record = GdnRecord.reserve(layer, 1, lanes * columns, torch.bfloat16).layer(0)
    mixed = gdn_inputs(product, layer, state, slots, record=record)
    return (
        lambda: gdn_verify(mixed, product, ba, layer, state, slots, record, dependent=True),
        lambda: [exact(product.sum(), ba, layer, state, slots.tolist(), range(0, lanes * columns + 1, columns))[0]],
    )


def _fold(lanes: int, columns: int, seed: int) -> Made:
    """All layers at once, here with one layer's record and inputs in each of them."""
    layer = random_layer("cuda", seed)
    values, ba = random_inputs(layer, lanes * columns, seed)
    product = Partial.of(values)
    state = random_state(layer, lanes, seed, layers=LAYERS)
    slots = torch.arange(lanes, dtype=torch.int32, device="cuda")
    accepted = (torch.arange(lanes, device="cuda") % columns + 1).int()
    record = GdnRecord.reserve(layer, LAYERS, lanes * columns, torch.bfloat16)
    for index in range(LAYERS):
        mixed = gdn_inputs(product, layer, state.layer(index), slots, record=record.layer(index))
        gdn_verify(mixed, product, ba, layer, state.layer(index), slots, record.layer(index))
    watched = LAYERS - 1
    before = GdnState(state.conv[watched].clone(), state.recurrent[watched].clone())

    def launch() -> list[Tensor]:
        gdn_fold(record, state, slots, accepted, columns, dependent=True)
        return [state.conv[watched], state.recurrent[watched]]

    def reference() -> list[Tensor]:
        after = GdnState(before.conv.clone(), before.recurrent.double())
        for lane, count in enumerate(accepted.tolist()):
            own = slice(lane * columns, lane * columns + count)
            _, one = exact(values[own], ba[own], layer, before, [lane], [0, count])
            after.conv[lane], after.recurrent[lane] = one.conv[lane], one.recurrent[lane]
        return [after.conv, after.recurrent]

    return launch, reference


def _chunk(lengths: Sequence[int], seed: int) -> Made:
    layer = random_layer("cuda", seed)
    bounds = [sum(lengths[:run]) for run in range(len(lengths) + 1)]
    values, ba = random_inputs(layer, bounds[-1], seed)
    product = Partial.of(values)
    state = random_state(layer, len(lengths), seed)
    before = GdnState(state.conv.clone(), state.recurrent.clone())
    slots = torch.arange(len(lengths), dtype=torch.int32, device="cuda").flip(0).contiguous()
    starts = torch.tensor(bounds, dtype=torch.int32, device="cuda")

    def launch() -> list[Tensor]:
        y = gdn_chunk(product, ba, layer, state, slots, starts, dependent=True)
        return [y, state.conv, state.recurrent]

    def reference() -> list[Tensor]:
        y, after = exact(values, ba, layer, before, slots.tolist(), bounds, rounded=torch.bfloat16)
        return [y, after.conv, after.recurrent]

    return launch, reference
