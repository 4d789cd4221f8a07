"""Declare compiled kernels, compile them once and cache them.

Numba's own `cache=True` checks only the file of the cached function, so a change in a helper of another file leaves
stale machine code behind. Our cache is a directory whose name is a hash of every kernel source and of the library
versions; NUMBA_CACHE_DIR and the host application's caches are not touched.

`@kernel` marks a function that other kernels call; `@entry(...)` marks a function that Python calls, with exactly one
signature. Importing this module does not import Numba.

A wheel of `make wheel` carries compiled kernels in the folder CARRIED, files of such a cache. They are read first; if
they are damaged, or were made for another CPU or other versions, the kernel is compiled into the cache as usual.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from contrada.interpreting import interpret, is_small

F = TypeVar("F", bound=Callable[..., Any])
_HELPERS: set[str] = set()  # names of functions that other kernels call
_SHARED: dict[Any, Any] = {}  # modules of helpers as entries link them, by the library that Numba made of the helper
CARRIED = Path(__file__).parent / "compiled"  # kernels that came with the package; hatch_build.py has this path too
INTERPRETED_SECONDS = 1.0  # for small calls of one kernel, before it is compiled
STALE_AFTER_SECONDS = 30 * 24 * 3600  # caches of other versions are removed if unused for 30 days


class CacheState(NamedTuple):
    """Directory of compiled kernels, and its contents for the current sources and libraries."""

    directory: Path
    key: str
    kernels: int
    nbytes: int
    writable: bool
    carried: int


@cache
def source_key() -> str:
    """Return a hash of all kernel sources, of codes.py and of the versions that shape the machine code.

    >>> len(source_key())
    16
    """
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in [Path(__file__), here / "codes.py", *sorted((here / "kernels").rglob("*.py"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for library in ("numba", "llvmlite", "numpy"):
        digest.update(f"{library}={version(library)};".encode())
    digest.update(f"{platform.python_implementation()} {sys.version_info[:3]} {platform.machine()}".encode())
    return digest.hexdigest()[:16]


def _home_cache() -> Path:
    """Return the root for caches that the user or the platform names."""
    if named := os.environ.get("CONTRADA_CACHE_DIR"):
        return Path(named)
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "contrada"


def _is_writable(directory: Path) -> bool:
    """Return True if the directory exists or can be made, and a file can be written there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _is_private(directory: Path) -> bool:
    """Return True if no other user could have put a file there: cached code is executed, so it must be our own."""
    if not hasattr(os, "getuid"):
        return True
    status = directory.lstat()
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.getuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _temporary_cache() -> Path:
    """Return a cache for users without a writable home: shared by their processes, closed to other users."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    directory = Path(tempfile.gettempdir()) / f"contrada-{owner}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        if _is_private(directory):
            return directory
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="contrada-"))


@cache
def cache_directory() -> Path:
    """Return the directory of the compiled kernels of these sources; make it if needed."""
    for root in (_home_cache, _temporary_cache):
        try:
            directory = root() / "kernels" / source_key()
        except (RuntimeError, OSError):  # no home directory at all
            continue
        if _is_writable(directory):
            return directory
    return Path(tempfile.mkdtemp(prefix="contrada-"))


def cache_state() -> CacheState:
    """Return what `contrada doctor` shows about the kernel cache; imports no Numba.

    >>> cache_state().key == source_key()
    True
    """
    directory = cache_directory()
    compiled = list(directory.glob("*.nbc"))
    return CacheState(
        directory,
        source_key(),
        len(compiled),
        sum(f.stat().st_size for f in compiled),
        _is_writable(directory),
        len(list(CARRIED.glob(f"*{source_key()}*.nbc"))),
    )


def _remove_stale(directory: Path) -> None:
    """Remove the caches of other source versions that were not written to for 30 days."""
    for sibling in directory.parent.iterdir():
        if sibling != directory and sibling.is_dir() and time.time() - sibling.stat().st_mtime > STALE_AFTER_SECONDS:
            shutil.rmtree(sibling, ignore_errors=True)


def kernel(function: F) -> F:
    """Compile a function for use by other kernels only: no GIL, no fastmath, division as in C, no Python wrapper.

    Reference counting is off (`_nrt`): the function works on arrays that its caller keeps alive, and allocates none.
    With reference counting, every call updates atomic counters of every array, which took most of the time of the
    relation kernel. Python cannot call the function, as there is no wrapper; tests use `.py_func`.
    """
    return _compile_helper(function, allocates=False)


def allocating_kernel(function: F) -> F:
    """Mark a kernel that allocates arrays: call it rarely, outside hot loops."""
    return _compile_helper(function, allocates=True)


def _compile_helper(function: F, allocates: bool) -> F:
    import numba

    _HELPERS.add(function.__qualname__)
    compiled: F = numba.njit(
        nogil=True,
        error_model="numpy",
        _nrt=allocates,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return compiled


@contextmanager
def _compiled_together(entry_name: str) -> Iterator[None]:
    """Within this context, link, optimise and translate helpers only as part of the entry that uses them.

    Numba links every function with all it calls, optimises that and makes machine code of it, so code at the bottom of
    a chain of ten calls is linked, optimised and translated ten times. Optimising once takes a third off a cold
    compile, and linking and translating once 40 % of the rest; no result changes. The entry's copies of the helpers
    become internal and get other names: other code that found these copies would miss arguments that the optimiser
    removed. After the context, helpers count as unfinished again: code of others that calls one then gets its code, in
    place of a call to nowhere.
    """
    from numba.core import codegen
    from numba.core.compiler_lock import global_compiler_lock

    library: Any = codegen.CPUCodeLibrary
    generator: Any = codegen.JITCPUCodegen
    finalize, optimise, set_env = library.finalize, library._optimize_final_module, generator.set_env

    skipped: list[Any] = []

    def finalize_entries(self: Any) -> None:
        if self.name in _HELPERS and self.name != entry_name:
            self._finalized, self._shared_module = True, _SHARED.get(self)  # the entry links its code
            skipped.append(self)
        else:
            self._linking_libraries = _linked_libraries(self)
            finalize(self)

    def optimise_renamed(self: Any) -> None:
        if self.name == entry_name:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "linkonce_odr":
                    function.linkage = "internal"
                    function.name = f"{entry_name}.{function.name}"
        optimise(self)

    def set_env_of_entries(self: Any, name: str, environment: Any) -> None:
        if self._engine.is_symbol_defined(name):  # a helper has none: it has no code of its own, and raises nothing
            set_env(self, name, environment)

    with global_compiler_lock:
        library.finalize, library._optimize_final_module = finalize_entries, optimise_renamed
        generator.set_env = set_env_of_entries
        try:
            yield
        finally:
            library.finalize, library._optimize_final_module = finalize, optimise
            generator.set_env = set_env
            for helper in skipped:
                _SHARED[helper] = helper._shared_module
                helper._finalized, helper._shared_module = False, None


def _linked_libraries(library: Any) -> list[Any]:
    """Return the libraries that a library calls, and all that the helpers among them call; callers come first.

    LLVM skips a helper that nothing calls when it is linked.
    """
    found: dict[Any, None] = {}  # a library after all that it calls

    def visit(caller: Any) -> None:
        for called in caller._linking_libraries:
            if called not in found:
                if called.name in _HELPERS:
                    visit(called)
                found[called] = None

    visit(library)
    return list(reversed(found))


Signature = tuple[str | type, ...]  # types of arguments, and named tuples of arrays that are one argument each


def _numba_types(signature: Signature) -> tuple[Any, ...]:
    """Return the Numba types of all arguments."""
    from numba import types

    found: list[Any] = []
    for part in signature:
        if isinstance(part, str):
            found += map(_numba_type, part.split())
        else:
            hints = get_type_hints(part, include_extras=True).values()
            found.append(types.BaseTuple.from_types([_numba_type(hint.__metadata__[0]) for hint in hints], part))
    return tuple(found)


def _numba_type(spec: str) -> Any:
    """Return the Numba type of one argument: `f8` a scalar, `f8[2]` a read-only array, `f8[2]!` a writable one."""
    from numba import types

    scalars = {
        "f8": types.float64,
        "i8": types.int64,
        "i4": types.int32,
        "u8": types.uint64,
        "u1": types.uint8,
        "b1": types.boolean,
    }
    name, _, rest = spec.partition("[")
    if not rest:
        return scalars[name]
    return types.Array(scalars[name], int(rest[0]), "C", readonly=not rest.endswith("!"))


class EntryPoint:
    """Kernel that Python calls: one signature, compiled or loaded from the cache when first needed."""

    _lock = threading.Lock()
    _announced = False

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        checked: bool,
        interpreted_seconds: float,
    ) -> None:
        self.py_func = function
        self.signature = signature
        self.checked = checked
        self._ready: Callable[..., Any] | None = None
        self._interpreted_seconds = interpreted_seconds  # left

    def ready(self) -> Callable[..., Any]:
        """Return the compiled function; concurrent first users (threads and processes) compile once."""
        with EntryPoint._lock:
            if self._ready is None:
                self._ready = self._load() or self._compile()
            return self._ready

    def usable(self) -> Callable[..., Any]:
        """Return the compiled function; or this entry point, if that is not in the cache and small calls may do."""
        if self._interpreted_seconds <= 0:
            return self.ready()
        with EntryPoint._lock:
            self._ready = self._ready or self._load()
            return self._ready or self

    def __call__(self, *arguments: Any) -> Any:
        """Interpret a small call; compile first if the call is large, or small calls have taken long enough."""
        if self._ready is not None or self._interpreted_seconds <= 0 or not is_small(arguments):
            return self.ready()(*arguments)
        begun = time.perf_counter()
        try:
            return interpret(self.py_func, arguments)
        finally:
            self._interpreted_seconds -= time.perf_counter() - begun

    def _load(self) -> Callable[..., Any] | None:
        """Return the kernel that the package carries or the cache holds, or None."""
        import numba

        if numba.config.DISABLE_JIT:
            return self.py_func
        try:
            return self._build(CARRIED, _raise_miss)
        except _CacheMissError:  # only then a cache is needed, and made
            pass
        try:
            return self._build(cache_directory(), _raise_miss)
        except _CacheMissError:
            return None

    def _compile(self) -> Callable[..., Any]:
        from filelock import FileLock

        with (
            FileLock(cache_directory() / f"{self.py_func.__name__}.lock"),  # other kernels compile meanwhile
            _compiled_together(self.py_func.__qualname__),
        ):
            compiled = self._build(cache_directory(), self._announce)  # or load: another process was first
        _remove_stale(cache_directory())
        return compiled

    def _build(self, directory: Path, on_miss: Callable[[], None]) -> Callable[..., Any]:
        """Return the kernel from the files in a directory; compile it after `on_miss` if that returns."""
        import numba

        dispatcher: Any = numba.njit(nogil=True, error_model="numpy")(self.py_func)
        dispatcher._cache = _kernel_cache_class(directory)(self.py_func)
        dispatcher._cache.on_miss = on_miss
        arguments = _numba_types(self.signature)
        dispatcher.compile(arguments)
        dispatcher.disable_compile()
        compiled: Callable[..., Any] = dispatcher if self.checked else dispatcher.overloads[arguments].entry_point
        return compiled

    @staticmethod
    def _announce() -> None:
        if not EntryPoint._announced:
            EntryPoint._announced = True
            where = cache_directory()
            print(
                f"contrada: compiling kernels for this machine, once; cached in {where}",
                file=sys.stderr,
                flush=True,
            )


def entry(
    *signature: str | type, checked: bool = True, interpreted: bool = False
) -> Callable[[Callable[..., Any]], EntryPoint]:
    """Declare a kernel that Python calls, with the types of its arguments in order (see `_numba_type`).

    A class among them is a NamedTuple of arrays whose annotations hold the types: one argument.

    `checked=False` skips the type checks of arguments, for frequent short calls whose arguments one place in our code
    makes: checking the types of thirty arrays takes as long as matching a point.

    If `interpreted`, a kernel that is not in the cache interprets small calls, and is compiled when these have taken
    INTERPRETED_SECONDS: a program that relates one pair need not wait for the compiler.
    """
    seconds = INTERPRETED_SECONDS if interpreted else 0.0
    return lambda function: EntryPoint(function, signature, checked, seconds)


class _CacheMissError(Exception):
    """The kernel is not in the cache: take the lock and compile."""


def _raise_miss() -> None:
    raise _CacheMissError


DIGEST_BYTES = 32  # checksum at the beginning of cache files


def _checked(data: bytes) -> bytes:
    """Return the data after the checksum in a cache file; raise ValueError if it is damaged."""
    if hashlib.blake2b(data[DIGEST_BYTES:], digest_size=DIGEST_BYTES).digest() != data[:DIGEST_BYTES]:
        raise ValueError("a file of the kernel cache is damaged")
    return data[DIGEST_BYTES:]


@cache
def _cache_file_class() -> Any:
    """Return Numba's class for files of compiled code, with a checksum; a damaged index counts as empty.

    Numba loads files unchecked: one changed bit fails at every start, or is machine code that does something else.
    """
    import pickle

    from numba.core import caching

    class CheckedFile(caching.IndexDataCacheFile):  # type: ignore[misc]
        def _dump(self, obj: Any) -> bytes:
            payload: bytes = super()._dump(obj)
            return hashlib.blake2b(payload, digest_size=DIGEST_BYTES).digest() + payload

        def _load_data(self, name: str) -> Any:
            return pickle.loads(_checked(Path(self._data_path(name)).read_bytes()))

        def _save_index(self, overloads: dict[Any, str]) -> None:
            with self._open_for_write(self._index_path) as file:
                file.write(self._dump((self._version, self._source_stamp, overloads)))

        def _load_index(self) -> dict[Any, str]:
            try:
                version, stamp, overloads = pickle.loads(_checked(Path(self._index_path).read_bytes()))
            except Exception:  # missing, damaged, or from another release
                return {}
            is_ours = (version, stamp) == (self._version, self._source_stamp)
            return dict(overloads) if is_ours else {}

    return CheckedFile


@cache
def _kernel_cache_class(directory: Path) -> Any:
    """Return Numba's function cache, placed in a directory of ours; a damaged file counts as a miss."""
    from numba.core import caching

    class Locator(caching._CacheLocator):  # type: ignore[misc]
        def get_cache_path(self) -> str:
            return str(directory)

        def get_source_stamp(self) -> str:
            return source_key()

        def get_disambiguator(self) -> str:
            return source_key()

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            return cls()

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Locator,)

        def __init__(self, py_func: Any) -> None:
            # Does not call Numba's constructor, where NUMBA_CACHE_LOCATOR_CLASSES overrides the locator.
            self._lineno = py_func.__code__.co_firstlineno
            self._locator = Locator()
            abiflags = getattr(sys, "abiflags", "")
            self._filename_base = self.get_filename_base(f"{py_func.__module__}.{py_func.__qualname__}", abiflags)

    class KernelCache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation
        on_miss: Callable[[], None]

        def __init__(self, py_func: Any) -> None:
            super().__init__(py_func)
            impl = self._impl
            self._cache_file = _cache_file_class()(
                self._cache_path, impl.filename_base, impl.locator.get_source_stamp()
            )

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                found = super().load_overload(sig, target_context)
            except Exception:  # a truncated or foreign file must cost a compilation, never a crash
                found = None
            if found is None:
                self.on_miss()
            return found

    return KernelCache
