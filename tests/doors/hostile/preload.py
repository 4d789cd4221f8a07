"""Loads all kernels when it is imported: workers are forked from a process that did so."""

import os

from contrada import kernels

if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
    for name in kernels.NAMES:
        kernels.compiled_kernel(name)
