"""CGAL, the peer of figure 4a of [SPATIAL]: exact intersection of one polygon with many, by a small C++ program.

The program is compiled when it is first needed, which takes about half a minute, and kept beside the compiled kernels.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Region, RegionArray
from contrada.geometry.arrays import compact
from contrada.jit import cache_directory
from contrada.papers.exhibit import NotAvailableError

SOURCE = Path(__file__).with_name("cgal_intersects.cpp")
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O2", "-DNDEBUG", "-shared", "-fPIC")
LIBRARIES = ("-lgmp", "-lmpfr")
BUILD_SECONDS = 600
SHOWN_LINES = 3  # of a compiler's errors


class CgalPolygons:
    """Simple polygons as CGAL holds them: exact, and ready to be compared."""

    def __init__(self, column: RegionArray) -> None:
        self._library = load_cgal()
        arrays = compact(column.arrays)
        is_kept = np.ones(len(arrays.xy), bool)
        is_kept[arrays.ring_offsets[1:] - 1] = False  # the closing vertex of each ring
        xy = np.ascontiguousarray(arrays.xy[is_kept], np.float64)
        offsets = (arrays.ring_offsets - np.arange(len(arrays.ring_offsets))).astype(np.int64)
        self._count = len(column)
        self._polygons = self._library.contrada_cgal_polygons(xy.ctypes.data, offsets.ctypes.data, self._count)
        if not self._polygons:
            raise NotAvailableError("CGAL failed to take the polygons")

    def __del__(self) -> None:
        if getattr(self, "_polygons", None):
            self._library.contrada_cgal_free(self._polygons)

    def meets_interior_of(self, message: Region) -> NDArray[np.bool_]:
        """Return for each polygon whether its interior meets that of a message's region."""
        one = CgalPolygons(message._column)
        found = np.zeros(self._count, np.uint8)
        if self._library.contrada_cgal_intersects(one._polygons, self._polygons, found.ctypes.data):
            raise NotAvailableError("CGAL failed to intersect the polygons")
        return found.astype(bool)


@cache
def load_cgal() -> ctypes.CDLL:
    """Return the compiled program; build it if needed. Raise NotAvailableError where it cannot be built."""
    library = ctypes.CDLL(str(built_program()))
    library.contrada_cgal_polygons.restype = ctypes.c_void_p
    library.contrada_cgal_polygons.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    library.contrada_cgal_intersects.argtypes = [ctypes.c_void_p] * 3
    library.contrada_cgal_free.argtypes = [ctypes.c_void_p]
    library.contrada_cgal_free.restype = None
    library.contrada_cgal_version.restype = ctypes.c_char_p
    return library


def version_of_cgal() -> str:
    """Return the version of CGAL that the program was compiled with."""
    found: bytes = load_cgal().contrada_cgal_version()
    return found.decode()


def built_program() -> Path:
    """Return the file of the shared library; compile it if the cache has none of this source."""
    key = hashlib.sha256("\0".join([SOURCE.read_text(), *FLAGS, *LIBRARIES]).encode()).hexdigest()[:16]
    file = cache_directory() / f"cgal-{key}.so"
    if file.exists():
        return file
    compiler = os.environ.get("CXX") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise NotAvailableError("no C++ compiler for the program that calls CGAL (Debian: apt-get install g++)")
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        made = Path(folder) / file.name
        compile_program(compiler, made)
        made.replace(file)
    return file


def compile_program(compiler: str, target: Path) -> None:
    """Compile the program into a file; raise NotAvailableError with the compiler's first errors if that fails."""
    command = [compiler, *FLAGS, str(SOURCE), "-o", str(target), *LIBRARIES]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailableError(f"the program that calls CGAL cannot be compiled: {error}") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if "error" in line][:SHOWN_LINES]
        reason = "; ".join(lines) or f"{compiler} ended with {done.returncode}"
        raise NotAvailableError(
            f"the program that calls CGAL cannot be compiled (Debian: apt-get install libcgal-dev): {reason}"
        )
