"""Shapes that the fused kernels serve: plain numbers, to be looked at before anything is loaded."""

from __future__ import annotations

HEAD_DIMS = (16, 32, 64, 128, 256)
"""Of attention."""
GDN_DIMS = (16, 32, 64, 128)
"""Of a Gated DeltaNet's keys and values."""
TAPS = 4
"""Width of its convolution."""
WIDEST = 16384
"""Of the residual stream: one program holds a column."""
