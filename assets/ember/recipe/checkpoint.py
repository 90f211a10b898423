"""Int8 training checkpoints: small enough to carry, exact enough to continue from.

Every matrix ``X`` is stored as ``X.q8`` int8 [rows, columns] and ``X.scale`` float16 [rows, columns/64], with
x = q8 · scale; vectors and the convolution taps stay BF16. Shapes of tensors that are not matrices are in the metadata.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

GROUP = 64


def _quantised(name: str, tensor: Tensor) -> bool:
    return tensor.dim() >= 2 and "conv1d" not in name and tensor[0].numel() % GROUP == 0


def save_int8(state: dict[str, Tensor], path: Path) -> None:
    """Write a state dict with Hugging Face names as a group-scaled int8 file."""
    out: dict[str, Tensor] = {}
    shapes: dict[str, str] = {}
    for name, tensor in state.items():
        x = tensor.detach().float()
        if not torch.isfinite(x).all():
            raise ValueError(f"{name} holds values that are not finite; the run that made it diverged")
        if not _quantised(name, x):
            out[name] = x.bfloat16().contiguous().cpu()
            continue
        if x.dim() > 2:
            shapes[name] = ",".join(map(str, x.shape))
        groups = x.reshape(x.shape[0], -1, GROUP)
        scale = (groups.abs().amax(-1) / 127).half().clamp(min=2**-24)
        q = (groups / scale.float()[..., None]).round().clamp(-127, 127)
        out[f"{name}.q8"] = q.to(torch.int8).reshape(x.shape[0], -1).contiguous().cpu()
        out[f"{name}.scale"] = scale.cpu()
    partial = Path(path).with_suffix(".partial")
    save_file(out, partial, shapes or None)
    partial.replace(path)


def load_int8(path: Path) -> dict[str, Tensor]:
    """Read what ``save_int8`` wrote, as float32 tensors under their Hugging Face names."""
    state: dict[str, Tensor] = {}
    with safe_open(path, "pt") as file:
        shapes = file.metadata() or {}
        for key in file.keys():  # noqa: SIM118 (a safetensors handle is not iterable)
            if key.endswith(".q8"):
                name = key[:-3]
                q, scale = file.get_tensor(key), file.get_tensor(f"{name}.scale").float()
                x = (q.float().view(q.shape[0], -1, GROUP) * scale[..., None]).view(q.shape)
                state[name] = x.view([int(n) for n in shapes[name].split(",")]) if name in shapes else x
            elif not key.endswith(".scale"):
                state[key] = file.get_tensor(key).float()
    return state


def split(path: Path, folder: Path, piece: int = 15 << 20) -> list[Path]:
    """Cut a file into numbered pieces of at most ``piece`` bytes, for links that carry small files only."""
    folder.mkdir(parents=True, exist_ok=True)
    data, parts = Path(path).read_bytes(), []
    for number, start in enumerate(range(0, len(data), piece)):
        part = folder / f"{Path(path).name}.{number:04d}"
        part.write_bytes(data[start : start + piece])
        parts.append(part)
    return parts


def join(parts: list[Path], path: Path) -> None:
    """Put the pieces of ``split`` together again, in the order of their numbers."""
    with open(path, "wb") as out:
        out.writelines(Path(part).read_bytes() for part in sorted(parts))
