"""How commands end: an error is one line on standard error and an exit code, never a traceback.

Exit codes: 0 done, 1 done but found faults, 2 could not run, 130 interrupted, 143 SIGTERM, 141 output closed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import typer

from contrada.cli.summary import JSON, SUFFIX, RunSummary, begin_summary, summary_of_run
from contrada.errors import ContradaError

FAULTS, FAILED, INTERRUPTED, NOT_READ = 1, 2, 130, 141
REPEAT_SECONDS = 0.01  # seconds until an interrupt is raised again


def fail(reason: str) -> NoReturn:
    """Print an error and exit with code 2."""
    complain(reason)
    raise typer.Exit(FAILED)


def complain(reason: str) -> None:
    """Print an error, which the summary of the command repeats."""
    summary_of_run().error = reason
    typer.echo(f"error: {reason}", err=True)


def require_spark() -> None:
    """Raise an error with the command that installs PySpark or Java, if one of them is missing."""
    from contrada.cli.java import find_java
    from contrada.pipeline.session import require_spark as require_pyspark

    require_pyspark()
    complaint = find_java().complaint
    if complaint is not None:
        raise ContradaError(complaint)


@contextmanager
def errors_told() -> Iterator[None]:
    """Print errors of input and of the system as one line, and exit."""
    try:
        yield
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _drop_output()
        raise typer.Exit(NOT_READ) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ContradaError as error:
        fail(str(error))
    except OSError as error:
        fail(_reason(error))


def _reason(error: OSError) -> str:
    place = error.filename
    named = f"{os.fsdecode(place)}: " if isinstance(place, str | bytes | os.PathLike) else ""
    return f"{named}{error.strerror or error}"


@contextmanager
def summarized(command: str, target: str | None) -> Iterator[None]:
    """Print errors of a command as one line, and write its summary to `target` however it ends."""
    run = begin_summary(command, target)
    if target is None:
        with errors_told():
            yield
        return
    _check_target(run, target)
    code = FAULTS  # of an error that only Python tells
    try:
        with errors_told():
            yield
            if sys.stdout is not None:
                sys.stdout.flush()  # closed output is an error of the command, so found before its summary
        code = 0
    except typer.Exit as ending:
        code = ending.exit_code
        raise
    except typer.BadParameter as error:  # printed here, since the summary is the last line
        code = error.exit_code
        complain(error.format_message())
        raise typer.Exit(code) from None
    except BaseException as error:
        run.error = run.error or f"{type(error).__name__}: {error}"
        raise
    finally:
        run.finish(code)


def _check_target(run: RunSummary, target: str) -> None:
    """Raise BadParameter before the command runs if its summary cannot be written."""
    place = Path(target)
    if target != JSON and (place.suffix != SUFFIX or place.is_dir() or not place.parent.is_dir()):
        run.target = None
        raise typer.BadParameter(
            f"--summary: need json, or a file with the suffix .json in an existing directory, got {target!r:.200}"
        )


@contextmanager
def finished() -> Iterator[None]:
    """Run the command line: an interrupt exits with 130, closed output with 141, neither with a traceback."""
    sys.unraisablehook = _raise_again
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None if standard output was closed at the start
                sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt) as error:
        _drop_output()
        sys.exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else NOT_READ)
    except OSError as error:  # such as a full disk behind standard output
        _drop_output()
        typer.echo(f"error: {_reason(error)}", err=True)
        sys.exit(FAILED)
    except SystemExit as ending:  # Rich exits with 1 on a broken pipe
        sys.exit(NOT_READ if isinstance(ending.__context__, BrokenPipeError) else ending.code)


def _raise_again(ignored: Any) -> None:
    """Raise an interrupt again that Python could not propagate from a callback."""
    if ignored.exc_type is KeyboardInterrupt:
        # Later, since now it would be raised within this hook; by a signal, since interrupt_main does not end a wait.
        later = threading.Timer(REPEAT_SECONDS, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        later.daemon = True
        later.start()
    else:
        sys.__unraisablehook__(ignored)


def _drop_output() -> None:
    """Redirect standard output to the null device: Python would complain about a failed flush at exit."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
