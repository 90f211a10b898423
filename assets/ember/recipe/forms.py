"""Functions that have a Triton form beside their torch one.

The torch form is the reference, and what runs on a CPU. ``choose`` compares both on the card, forward and every
gradient, and uses the Triton form from then on where they agree; where it does not compile, or is wrong, training goes
on with the torch form and says so.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .shape import Shape

LARGEST = 1e-2
"""Largest difference between two forms, relative: bfloat16 gradients alone are 2e-3 apart."""

Form = Callable[..., Tensor | tuple[Tensor, ...]]


@dataclass
class _Pair:
    reference: Form
    module: str
    example: Callable[[Shape, torch.Generator], list[Tensor]]
    chosen: Form | None = None
    suits: Callable[[Tensor], bool] = lambda x: True


_pairs: dict[str, _Pair] = {}


def in_triton(module: str, example: Callable[[Shape, torch.Generator], list[Tensor]]) -> Callable[[Form], Form]:
    """Mark a torch function whose Triton form has its name in ``module``, beside a function ``suits`` that tells from
    the first argument whether the form takes it. ``example`` makes inputs to compare them with; gradients are compared
    of those that require them."""

    def mark(reference: Form) -> Form:
        pair = _pairs[reference.__name__] = _Pair(reference, module, example)

        @functools.wraps(reference)
        def call(*args: Tensor) -> Tensor | tuple[Tensor, ...]:
            if pair.chosen and args[0].is_cuda and pair.suits(args[0]):
                return pair.chosen(*args)
            return reference(*args)

        return call

    return mark


def choose(device: torch.device, shape: Shape) -> Iterator[str]:
    """Compare and choose, on ``device``; a line about each function. Before ``fuse.enable``: the torch forms are to
    run as written."""
    for name, pair in _pairs.items():
        pair.chosen = None
        try:
            module = importlib.import_module(f".{pair.module}", __package__)
            form = getattr(module, name)
            inputs = [
                x.detach().to(device).requires_grad_(x.requires_grad)
                for x in pair.example(shape, torch.Generator().manual_seed(1))
            ]
            if not module.suits(inputs[0]):
                raise ValueError("not made for this shape")
            apart = largest_difference(form, pair.reference, inputs)
        except Exception as fault:  # no Triton, no compiler, a card too small: all the same here
            yield f"{name} in torch: {type(fault).__name__}: {(str(fault).strip() or '-').splitlines()[-1]}"
            continue
        if apart < LARGEST:
            pair.chosen, pair.suits = form, module.suits
            yield f"{name} in Triton, {apart:.1e} from torch"
        else:
            yield f"{name} in torch: Triton is {apart:.1e} from it"


def largest_difference(form: Form, reference: Form, inputs: list[Tensor]) -> float:
    """Largest |form's - reference's| / |reference's| of all results and gradients; infinite where one is no number."""
    found = zip(results(form, inputs), results(reference, inputs), strict=True)
    apart = [((a.double() - b.double()).norm() / b.double().norm()).item() for a, b in found]
    return max(x if x == x else float("inf") for x in apart)


def results(form: Form, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Results, and gradients under a fixed weighting of them."""
    found = form(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    weights = [torch.arange(x.numel(), device=x.device).sin().bfloat16().view(x.shape).to(x) for x in found]
    return *found, *torch.autograd.grad(found, [x for x in inputs if x.requires_grad], weights)
