"""How commands end: errors are a line on standard error and an exit code, never a traceback.

0: it ran. 1: it ran and found fault. 2: it could not run. 130: interrupted, 143: by SIGTERM. 141: nobody reads the
output any more.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from contrada.errors import ContradaError

FAULTS, FAILED, INTERRUPTED, NOT_READ = 1, 2, 130, 141
AGAIN = 0.01  # seconds until an interrupt is raised anew


def fail(reason: str) -> NoReturn:
    """Say what is wrong, and end."""
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(FAILED)


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
    """Tell bad input and what the system refuses in a line."""
    try:
        yield
    except BrokenPipeError:  # `| head` has seen enough
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
def finished() -> Iterator[None]:
    """Run the command line in this: an interrupt is 130, output that nobody reads 141, and neither prints a trace."""
    sys.unraisablehook = _raise_again
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None where standard output is closed from the start
                sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt) as error:
        _drop_output()
        sys.exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else NOT_READ)
    except OSError as error:  # such as a full disk behind standard output
        _drop_output()
        typer.echo(f"error: {_reason(error)}", err=True)
        sys.exit(FAILED)
    except SystemExit as ending:  # Rich ends the process with 1 if it meets a broken pipe
        sys.exit(NOT_READ if isinstance(ending.__context__, BrokenPipeError) else ending.code)


def _raise_again(ignored: Any) -> None:
    """Raise an interrupt anew that Python could not pass on, since it came in a callback."""
    if ignored.exc_type is KeyboardInterrupt:
        # Now it would be raised within this hook; and a signal, unlike interrupt_main, ends a wait of the main thread.
        later = threading.Timer(AGAIN, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        later.daemon = True
        later.start()
    else:
        sys.__unraisablehook__(ignored)


def _drop_output() -> None:
    """Let what is still buffered for standard output go nowhere, or Python would complain when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except OSError:
        return
