"""Compile every kernel's specialisations for cards that are not here, in a process of its own: ``python -m
tests.kernels.compiled [AREA …]`` prints one JSON object a line. The tests' own process has Triton's interpreter.

Each area lists its own in ``tests/kernels/specs_<area>.py``, as ``specialisations()``.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kernels.specialisation import Specialisation


def areas() -> list[str]:
    return sorted(path.stem.removeprefix("specs_") for path in Path(__file__).parent.glob("specs_*.py"))


def specialisations(area: str) -> Iterator[Specialisation]:
    yield from importlib.import_module(f"tests.kernels.specs_{area}").specialisations()


def compile_one(what: Specialisation, target: int) -> dict[str, Any]:
    """Registers, bytes of stack (what is spilled lies there) and of shared memory; or the compiler's complaint."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

    names = what.kernel.arg_names
    signature = {name: "constexpr" if name in what.constants else what.types[name] for name in names}
    wide = [name for name, kind in signature.items() if kind[0] in "*i" and name not in what.unaligned]
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in wide}
    source = GluonASTSource if isinstance(what.kernel, GluonJITFunction) else ASTSource
    options: dict[str, Any] = {"num_warps": what.warps, "num_stages": what.stages}
    if what.registers:
        options["maxnreg"] = what.registers
    found: dict[str, Any] = {"name": what.name, "target": target, "hot": what.hot}
    try:
        compiled = triton.compile(
            source(fn=what.kernel, signature=signature, constexprs=dict(what.constants), attrs=attributes),
            target=GPUTarget("cuda", target, 32),
            options=options,
        )
    except Exception as fault:  # the others are to be looked at too
        return found | {"fault": f"{type(fault).__name__}: {fault}"[-2000:]}
    return found | _resources(compiled.asm["cubin"]) | {"shared": compiled.metadata.shared}


def _resources(cubin: bytes) -> dict[str, int]:
    import triton

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        text = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    return {key.lower(): int(value) for key, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", text)}


def main() -> None:
    for area in sys.argv[1:] or areas():
        for what in specialisations(area):
            for target in what.targets:
                print(json.dumps(compile_one(what, target)), flush=True)


if __name__ == "__main__":
    main()
