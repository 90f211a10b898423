"""How fast texts fold, and the memory it takes.

    python -m tests.engine.answers.fold.measure

The text is the real logs of tests/data/logs again and again with other numbers: 4 MB in memory, 200 MB in a file. Both
are measured in a process of their own, in seconds of the processor and of the clock; the processor's are the ones to
compare on a busy machine.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LOGS = Path(__file__).parents[3] / "data" / "logs"
_NUMBER = re.compile(rb"(?<![\d/-])(?!20\d\d)\d{3,6}(?![\d/:-])")


def varied(size: int) -> Iterator[bytes]:
    """About ``size`` bytes of real logs whose longer numbers differ each time."""
    rng = random.Random(7)

    def other(match: re.Match[bytes]) -> bytes:
        digits = len(match.group())
        return b"%d" % rng.randrange(10 ** (digits - 1), 10**digits)

    texts = [path.read_bytes() for path in sorted(LOGS.glob("*.log"))]
    done = 0
    while done < size:
        for text in texts:
            piece = _NUMBER.sub(other, text)
            done += len(piece)
            yield piece


def measure(path: Path, *, in_memory: bool) -> None:
    import psutil

    from engine.answers.fold.fold import fold
    from engine.answers.fold.render import render_templates
    from engine.answers.fold.source import Source

    given = path.read_bytes() if in_memory else path
    before = psutil.Process().memory_info().rss
    wall, cpu = time.perf_counter(), time.process_time()
    with Source(given) as source:
        indexed = time.process_time()
        folded = fold(source)
        cpu_end, wall_end = time.process_time(), time.perf_counter()
        size = source.size / 1e6
        text = sum(len(line.text) for line in render_templates(folded))
        spent = cpu_end - cpu
        print(
            f"{size:.1f} MB, {source.lines:,} lines, {folded.entries:,} entries -> "
            f"{len(folded.templates) - 1:,} templates, {text / 1e3:.0f} KB of folded text\n"
            f"  processor {spent:.2f} s ({size / spent:.0f} MB/s; {indexed - cpu:.2f} s of it to find lines), "
            f"clock {wall_end - wall:.2f} s\n"
            f"  memory {before / 2**20:.0f} MiB before, {_peak() / 2**20:.0f} MiB at most"
        )


def _peak() -> int:
    try:
        import resource
    except ImportError:  # Windows knows it by another name
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    if len(sys.argv) == 3:
        measure(Path(sys.argv[1]), in_memory=sys.argv[2] == "memory")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "repeated.log"
        for size, where in ((4_000_000, "memory"), (200_000_000, "file")):
            with path.open("wb") as file:
                file.writelines(varied(size))
            subprocess.run([sys.executable, "-m", __spec__.name, str(path), where], check=True)


if __name__ == "__main__":
    main()
