"""Loads all kernels when it is imported: workers are forked from a process that did so."""

import os
import pkgutil
from importlib import import_module

from contrada import kernels
from contrada.jit import EntryPoint

if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, EntryPoint):
                value.ready()
