"""Random numbers that belong to a request: a function of its seed and of how many tokens it has drawn.

Nothing is carried from draw to draw, so a request's stream is the same on any device, in any batch and after parking.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


def _mix(x: int) -> int:
    """splitmix64's output function (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def uniform(seed: int, step: int) -> float:
    """Number ``step`` of stream ``seed`` (any integer, taken modulo 2⁶⁴): 53 bits, 0 ≤ u < 1.

    It is output ``step`` of a splitmix64 generator whose state starts at the mixed seed, so that neighbouring seeds
    give unrelated streams.
    """
    start = _mix((seed + _GAMMA) & _MASK)
    return (_mix((start + (step + 1) * _GAMMA) & _MASK) >> 11) * 2.0**-53
