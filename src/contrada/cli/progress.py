"""A progress bar on a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

UPDATE_SECONDS = 0.1  # seconds between two updates


class ProgressLine:
    """Shows the progress of a command on standard error; used as a context manager.

    Nothing is shown if standard error is no terminal, or if the results scroll over that terminal.
    """

    def __init__(self, is_wanted: bool) -> None:
        self.is_shown = is_wanted and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._next = 0.0

    def __enter__(self) -> ProgressLine:
        if self.is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, text: Callable[[], str], position: Callable[[], tuple[int, int]] | None = None) -> None:
        """Show a text and the position in a file; both functions are called only when an update is due."""
        now = time.monotonic()
        if self._bar is None or now < self._next:
            return
        self._next = now + UPDATE_SECONDS
        done, total = position() if position is not None else (0, None)
        self._bar.update(self._task, description=text(), completed=done, total=total)

    def step(self, text: str, done: int, total: int) -> None:
        """Show a text, and how many of all steps are done."""
        self.tell(lambda: text, lambda: (done, total))
