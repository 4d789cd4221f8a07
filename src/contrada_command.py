"""What the `contrada` command starts: Ctrl-C during the imports of the package ends it in silence.

This module lies beside the package, since importing any module of the package imports NumPy, Shapely and PyArrow first.
"""

import os
import signal

INTERRUPTED = 130


def main() -> None:
    """Import the command line and run it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # a process in the background ignores the signal, and shall
        # An exception out of a signal handler would be swallowed or printed by whatever is being imported. Nothing is
        # open yet that would have to be closed.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    from contrada.cli.main import run

    signal.signal(signal.SIGINT, usual)
    run()


if __name__ == "__main__":
    main()
