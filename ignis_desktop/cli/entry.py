"""The command group and the one place where faults become a sentence and an exit code."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence

import click

from ignis_desktop import __version__
from ignis_desktop.cli import bench, calibrate, chat, decide, doctor, locate, models, plan, point, serve, window
from ignis_desktop.cli.errors import FAULT, INTERRUPTED, USAGE, CommandError


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, expose_value=False, help="Show where a fault arose; works after a command too.")
@click.version_option(__version__, prog_name="ignis")
@click.pass_context
def ignis(context: click.Context) -> int | None:
    """A local language and vision model: chat, find the line, point at the button.

    Without a command, opens the window. A command uses a running instance when there is one, else loads the model
    itself.
    """
    return context.invoke(window.window) if context.invoked_subcommand is None else None


for _command in (
    window.window,
    serve.serve,
    chat.chat,
    locate.locate,
    point.point,
    decide.decide,
    plan.plan,
    models.models,
    doctor.doctor,
    bench.bench,
    calibrate.calibrate,
):
    ignis.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Exit code of ``ignis`` with these arguments; faults become a sentence on standard error, but with --debug."""
    if sys.platform == "darwin":
        return _complain("Ignis Desktop runs on Linux and Windows; macOS is not supported.", USAGE)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal or a pipe cannot show must not end a command half way.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    arguments, debug = _without_debug(arguments)
    _log_to_stderr(debug=debug)
    try:
        result = ignis.main(arguments, prog_name="ignis", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as fault:
        fault.show()
        return fault.exit_code
    except CommandError as fault:
        return _complain(fault.message, fault.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except SystemExit:
        return 0  # click's own way out when the reader has left
    except BrokenPipeError:
        # The reader has seen enough (| head). Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as fault:
        if debug:
            raise
        said = " ".join(str(fault).split()) or "no reason given"
        if isinstance(fault, ModuleNotFoundError):
            return _complain(f"The installation is not whole ({said}); repair it with installer/run.py.", FAULT)
        return _complain(f"{type(fault).__name__}: {said} (--debug shows where)", FAULT)


def _log_to_stderr(*, debug: bool) -> None:
    """Warnings of the engine and the server as one line each; where they arose with ``debug`` only."""

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            fault = record.exc_info[1] if record.exc_info else None
            said = f": {type(fault).__name__}: {fault}" if fault is not None else ""
            return " ".join(f"ignis: {record.getMessage()}{said}".split())

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s") if debug else OneLine())
    handler.setLevel(logging.WARNING)  # the window opens the root logger wider, for its file
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if not debug:
        warnings.simplefilter("ignore")  # a library's word to programmers is none to who types a command


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments less a ``--debug`` anywhere among the options, and whether there was one."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--debug"]
    return [*kept, *arguments[end:]], len(kept) < end


def _complain(sentence: str, exit_code: int) -> int:
    click.echo(f"ignis: {sentence}", err=True)
    return exit_code
