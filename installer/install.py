"""Make the environment and install the project with what it needs into it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from ignis_desktop.system_libraries import Package
from installer import faults, lock, system_packages, torch_index
from installer.environment import Environment
from installer.faults import InstallError

GIB = 1024**3
# Measured with torch 2.13 on Linux: installed size plus what pip holds besides while it unpacks.
NEED_CPU = 4 * GIB
NEED_CUDA = 14 * GIB


def ensure(environment: Environment, extras: set[str]) -> None:
    """Install unless everything is there. Raises ``InstallError``; an interrupted call is made good by the next one."""
    try:
        with lock.exclusive(environment.lock_file) as lock_descriptor:
            if not environment.is_current(extras):  # another process may have done it meanwhile
                _install(environment, extras, lock_descriptor)
    except OSError as fault:
        raise InstallError(faults.explain(str(fault), environment.log_file)) from fault


def _install(environment: Environment, extras: set[str], lock_descriptor: int) -> None:
    started = time.monotonic()
    half_made = environment.marker_file.exists()
    if not half_made:
        extras = extras | environment.extras()
    if half_made or _is_stale(environment):
        say("Removing the unfinished or outdated .venv.")
        _remove(environment)
    first_time = not environment.python.exists()
    if first_time:
        _check_disk(environment)
    system_packages.provide(system_packages.missing(tests="test" in extras), "the window")
    environment.folder.mkdir(exist_ok=True)
    environment.marker_file.touch()
    if first_time:
        _make_venv(environment)
        say("Installing PyTorch, Qt and the rest into .venv: 600 MB to fetch (with CUDA several GB), some minutes.")
    else:
        say("Bringing .venv up to date with pyproject.toml.")
    _pip_install(environment, extras, lock_descriptor)
    environment.write_stamp(extras)
    environment.marker_file.unlink()
    say(f"Installed in {time.monotonic() - started:.0f} s.")


def say(text: str) -> None:
    """To standard error: standard output belongs to the command that is started afterwards."""
    print(text, file=sys.stderr, flush=True)


def _is_stale(environment: Environment) -> bool:
    """An environment that cannot be brought up to date: its Python or its pip is gone, or it is another Python's."""
    if not environment.folder.exists():
        return False
    probe = "import sys, pip; print(sys.implementation.cache_tag)"
    try:
        found = subprocess.run([environment.python, "-c", probe], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return found.stdout.strip() != sys.implementation.cache_tag


def _remove(environment: Environment) -> None:
    """Marker first in, last out: a removal that is cut short leaves what the next start recognises as half-made."""
    environment.marker_file.touch()
    for entry in environment.folder.iterdir():
        if entry == environment.marker_file:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _check_disk(environment: Environment) -> None:
    need = NEED_CUDA if torch_index.has_nvidia_gpu() else NEED_CPU
    free = shutil.disk_usage(environment.project).free
    if free < need:
        raise InstallError(
            f"Installing needs {need / GIB:.0f} GiB of free disk in {environment.project}; {free / GIB:.1f} are free. "
            "Free some space and run the same command again."
        )


def _make_venv(environment: Environment) -> None:
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        _provide_venv_module()
    made = subprocess.run([sys.executable, "-m", "venv", environment.folder], capture_output=True, text=True)
    if made.returncode != 0:
        raise InstallError(faults.explain(made.stdout + made.stderr, environment.folder))


def _provide_venv_module() -> None:
    """Debian and Ubuntu leave venv out of their python3 package."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if not system_packages.provide([Package(name, "python3", "python")], "Python's venv module"):
        raise InstallError("Python's venv or ensurepip module is missing. Install it, then run the same command again.")
    importlib.invalidate_caches()


def _pip_install(environment: Environment, extras: set[str], lock_descriptor: int) -> None:
    wanted = str(environment.project) + (f"[{','.join(sorted(extras))}]" if extras else "")
    interactive = sys.stderr.isatty()
    command = [str(environment.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    if "PIP_RETRIES" not in os.environ:
        command += ["--retries", "2"]
    if not interactive:
        command += ["--quiet"]
    index = torch_index.extra_index()
    if index:
        command += ["--extra-index-url", index]
    command += ["--editable", wanted]
    # pip unpacks gigabytes in its temporary folder: beside the environment there is room, /tmp may be small.
    scratch = environment.folder / "tmp"
    scratch.mkdir(exist_ok=True)
    variables = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "PYTHONNOUSERSITE": "1"}
    variables.pop("PYTHONPATH", None)
    status, output = _run_logged(command, variables, environment, lock_descriptor, show=interactive)
    shutil.rmtree(scratch, ignore_errors=True)
    if status != 0:
        raise InstallError(faults.explain(output, environment.log_file))


def _run_logged(
    command: Sequence[str], variables: dict[str, str], environment: Environment, lock_descriptor: int, *, show: bool
) -> tuple[int, str]:
    """Run pip, keeping what it says in the log. With ``show`` its progress bars go to the terminal."""
    lines: list[str] = []
    with (
        open(environment.log_file, "w", encoding="utf-8") as log,
        _ended(
            subprocess.Popen(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr if show else subprocess.PIPE,
                stderr=subprocess.PIPE if show else subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                pass_fds=() if os.name == "nt" else (lock_descriptor,),
            )
        ) as pip,
    ):
        stream = pip.stderr if show else pip.stdout
        assert stream is not None
        for line in stream:
            lines.append(line)
            log.write(line)
        return pip.wait(), "".join(lines)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """The process is gone when this is left, however it is left."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
