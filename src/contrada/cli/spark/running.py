"""Run commands on Spark that end cleanly: Ctrl-C and SIGTERM print one line, and nothing from Java or workers.

Java runs in its own session, so that Ctrl-C in a terminal reaches this process alone. The standard error of Java and
its Python workers comes through a pipe, which is no longer copied to the terminal after a signal.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from contrada.cli.ending import require_spark
from contrada.cli.summary import summary_of_run
from contrada.errors import ContradaError
from contrada.pipeline.kafka import PACKAGES
from contrada.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNALS = (signal.SIGINT, signal.SIGTERM)
USUAL_LINES = (b"WARNING: Using incubator modules", b"Setting default log level", b"To adjust logging level",
           b"Setting Spark log level")  # fmt: skip
# Lines of Ivy, which fetches packages: what it looks for, finds and copies, a table of that, and how Java ends without.
IVY_LINES = (b":: ", b"::::", b"\t", b"Ivy Default Cache", b"The jars for the packages", b"org.", b"software.", b"io.",
             b"https://", b"http://", b"downloading ",
             b'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency')  # fmt: skip
UNRESOLVED = ("Server access error", "unresolved dependency", ": not found")  # why a package is not there
MAX_HELD_LINES = 500
LAST_OUTPUT_SECONDS = 3.0  # seconds to read Java's output if it does not start
HOLD_SECONDS = 0.2  # seconds that a line of Java is held back: it may react to a signal before this process does


class Interruption:
    """Handles signals: the first ends the command, or is only recorded if `is_patient`; the second ends it at once.

    `number` is the first signal, None until it comes; `line` is printed when the process ends.
    """

    def __init__(self, line: str) -> None:
        self.number: int | None = None
        self.is_patient = False
        self._line = line
        self._packages = ""  # that Ivy is to fetch
        self._held: list[str] = []  # lines of Ivy

    def install(self) -> None:
        """Install the handlers; to be called again after a Spark session starts, which replaces that of SIGINT."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._receive)

    def _receive(self, number: int, frame: Any) -> None:
        if self.number is not None:
            _end_java()
            self.end()
        self.number = number
        _silence_python()
        if not self.is_patient:
            _end_java()
            raise KeyboardInterrupt

    @property
    def code(self) -> int:
        """Return the exit code: 128 plus the number of the signal."""
        return 128 + (self.number or signal.SIGINT)

    def start(self, master: str | None, further: Mapping[str, str] | None = None) -> SparkSession:
        """Start Spark; a missing PySpark or Java, and packages that cannot be fetched, are one-sentence errors."""
        require_spark()
        self._packages = (further or {}).get(PACKAGES, "")
        reading, writing = os.pipe()
        relay = threading.Thread(target=self._relay, args=(reading,), daemon=True)
        relay.start()
        try:
            with os.fdopen(writing, "wb"):
                return session(master, further, {"stderr": writing, "start_new_session": True})
        except ContradaError as error:
            relay.join(LAST_OUTPUT_SECONDS)
            why = next((line for sign in UNRESOLVED for line in self._held if sign in line), None)
            if why is None:
                raise
            raise ContradaError(
                f"Maven does not get {self._packages}: {why}; is Maven Central reachable? Without it, set"
                " spark.jars.ivySettings in conf/spark-defaults.conf to settings with your repository, or pass the jars"
            ) from error
        finally:
            self.install()

    def _relay(self, reading: int) -> None:
        """Copy Java's standard error, except its usual first lines, until a signal comes."""
        rest = b""
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                time.sleep(HOLD_SECONDS)  # once for all lines: Java must not wait for this pipe
                *lines, rest = (rest + data).split(b"\n")
                self._copy(lines)
        self._copy([rest] if rest else [])

    def _copy(self, lines: list[bytes]) -> None:
        usual = USUAL_LINES + (IVY_LINES if self._packages else ())
        if self._packages and len(self._held) < MAX_HELD_LINES:
            self._held += [line.decode(errors="replace").strip() for line in lines]
        shown = [line for line in lines if not line.startswith(usual) and (line.strip() or not self._packages)]
        text = b"".join(line + b"\n" for line in shown)
        if self.number is None and text:
            with suppress(OSError):
                os.write(2, text)

    def end(self) -> NoReturn:
        """Print the line and exit at once: Java ends by itself when its standard input closes."""
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        with suppress(OSError, ValueError):
            print(self._line, file=sys.stderr, flush=True)
        run = summary_of_run()
        run.error = self._line
        with suppress(OSError):
            run.finish(self.code)
        os._exit(self.code)


def _end_java() -> None:
    """End Java, with all Spark jobs.

    Py4J has one connection per thread, and an interrupted one still has an answer to come, which the next call would
    take for its own. When Java is gone, calls fail at once.
    """
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is not None:
        process.terminate()


def _silence_python() -> None:
    """Suppress messages of Py4J, PySpark and threads whose connections end."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")  # PySpark warns if it stops a context whose Java is gone
    threading.excepthook = lambda given: None
    sys.unraisablehook = lambda given: None


@contextmanager
def interruptible(line: str = "interrupted: the output is incomplete") -> Iterator[Interruption]:
    """Run a command on Spark. A signal ends the process with `line` and code 130 for Ctrl-C, 143 for SIGTERM."""
    made = Interruption(line)
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS} if is_main else {}
    made.install()
    try:
        yield made
    except BaseException:  # any type: after a signal, calls to Java fail in many ways
        if made.number is None:
            raise
        made.end()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
