"""Triton forms are taken where they agree with the torch ones, and nowhere else."""

from __future__ import annotations

import sys

import pytest
import torch

from assets.ember.recipe import branches, forms, gdn, model
from assets.ember.recipe.shape import Shape

pytest.importorskip("triton", reason="Triton is not everywhere.")
from assets.ember.recipe import convolution, delta, rotary

CPU = torch.device("cpu")
FORMS = {
    "gated_delta_prefix": delta,
    "gated_delta_branches": delta,
    "rotate_heads": rotary,
    "conv_silu": convolution,
    "conv_silu_after": convolution,
}


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch):
    for pair in forms._pairs.values():
        monkeypatch.setattr(pair, "chosen", None)
        monkeypatch.setattr(pair, "suits", pair.suits)


@pytest.fixture
def shape(folder):
    found = Shape.from_config(folder / "config.json")
    return found.__class__(**{**vars(found), "gdn_heads": 1, "gdn_dim": 32, "vision_hidden": 64, "vision_heads": 2})


def chosen():
    return {name for name, pair in forms._pairs.items() if pair.chosen}


def test_forms_that_agree_are_chosen(shape):
    lines = list(forms.choose(CPU, shape))
    assert chosen() == FORMS.keys()
    assert [line.split(" in Triton, ")[0] for line in lines] == list(forms._pairs)


def test_a_form_that_is_off_is_not(shape, monkeypatch):
    branches = delta.gated_delta_branches
    monkeypatch.setattr(delta, "gated_delta_branches", lambda *given: branches(*given) * 1.05)
    monkeypatch.setattr(delta, "gated_delta_prefix", lambda *given: (x * float("nan") for x in given))
    lines = list(forms.choose(CPU, shape))
    assert "gated_delta_branches in torch: Triton is 5.0e-02 from it" in lines
    assert chosen() == FORMS.keys() - {"gated_delta_prefix", "gated_delta_branches"}


def test_without_triton_the_torch_forms_stay(shape, monkeypatch):
    for name in ("convolution", "delta", "rotary"):
        monkeypatch.setitem(sys.modules, f"assets.ember.recipe.{name}", None)
    assert all(" in torch: ModuleNotFoundError: " in line for line in forms.choose(CPU, shape))
    assert chosen() == set()


def test_rotated_heads(shape):
    """Cut off to bfloat16 once, as the interpreter does instead of rounding."""
    example = forms._pairs["rotate_heads"].example(shape, torch.Generator().manual_seed(2))
    exact = [example[0].detach().double().requires_grad_(), *(x.double() for x in example[1:])]
    found, expected = (
        forms.results(form, given) for form, given in ((rotary.rotate_heads, example), (model.rotate_heads, exact))
    )
    for a, b in zip(found, expected, strict=True):
        assert ((a.double() - b).norm() / b.norm()).item() < 5e-3


@pytest.mark.parametrize("name", ["conv_silu", "conv_silu_after"])
@pytest.mark.parametrize("length", [1, 24, 29, 70])
def test_convolution(name, length, shape, monkeypatch):
    """Lengths that leave the last tile with context alone, or with nothing of the sequence's end."""
    x, *rest = forms._pairs[name].example(shape, torch.Generator().manual_seed(3))
    x = torch.randn(3 if rest[1:] else 2, length, x.shape[-1]).bfloat16().requires_grad_()
    exact = [t.detach().double().requires_grad_() for t in (x, *rest)]
    reference = model.conv_silu if name == "conv_silu" else branches.conv_silu_after
    found = forms.results(getattr(convolution, name), [x, *rest])
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "float", lambda t: t)
        expected = forms.results(reference, exact)
    for a, b in zip(found, expected, strict=True):
        assert ((a.double() - b).norm() / b.norm()).item() < 5e-3


def test_on_a_cpu_the_torch_form_runs(shape, monkeypatch):
    monkeypatch.setattr(forms._pairs["gated_delta_prefix"], "chosen", lambda *given: pytest.fail("chosen for a card"))
    assert gdn.gated_delta_rule(*gdn._example((1, 10), shape, torch.Generator())).shape == (1, 10, 1, 32)
