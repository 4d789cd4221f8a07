"""How commands end: errors are a line on standard error and an exit code, never a traceback.

0: it ran. 1: it ran and found fault. 2: it could not run. 130: interrupted, 143: by SIGTERM. 141: nobody reads the
output any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from contrada.errors import ContradaError

FAULTS, FAILED, INTERRUPTED, NOT_READ = 1, 2, 130, 141


def fail(reason: str) -> NoReturn:
    """Say what is wrong, and end."""
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(FAILED)


def require_java() -> None:
    """Raise an error with the command that installs Java, if Spark would not find one."""
    from contrada.cli.java import find_java

    complaint = find_java().complaint
    if complaint is not None:
        raise ContradaError(complaint)


def require_spark_and_java() -> None:
    """Raise an error that says what to install, if PySpark or Java is missing."""
    from contrada.pipeline.session import require_spark

    require_spark()
    require_java()


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
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        fail(f"{place}{error.strerror or error}")


def _drop_output() -> None:
    """Let what is still buffered for standard output go nowhere, or Python would complain when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except OSError:
        return
