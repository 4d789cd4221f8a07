"""Folders import one way only, stay small enough to read, and are tested through public names."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import contrada
from console import python

PACKAGE = Path(contrada.__file__).parent
ROOT = Path(__file__).parent.parent
MODULE_LINES = 600  # fewer than this; one subject per module matters more
FOLDER_FILES = 30  # at one level, at most; twenty is the goal
FUNCTION_LINES = 60  # at most; forty is the goal
HEAVY = {
    "aiohttp",
    "starlette",
    "uvicorn",
    "hypothesis",
    "joserfc",
    "lark",
    "matplotlib",
    "numba",
    "pandas",
    "pyspark",
    "rich",
    "sqlalchemy",
}

# Folder: the folders it may import, besides itself and SHARED. Folders that do not exist yet are listed too, so that
# each finds its place when it comes.
SHARED = {"amounts", "arguments", "cancelling", "codes", "collecting", "doors", "errors", "forking", "halving",
          "installation", "limits", "shown", "spark_names"}  # fmt: skip
CORE = {"kernels", "drawing", "geometry", "model", "cql2", "formats", "index", "simplification", "matching",
        "covering"}  # fmt: skip
ALLOWED = {
    "kernels": {"codes", "interpreting", "jit"},
    "drawing": set(),
    "geometry": {"kernels", "drawing"},
    "model": {"geometry", "kernels"},
    "cql2": {"geometry", "model"},
    "formats": {"geometry", "model", "cql2"},
    "index": {"geometry", "kernels", "model"},
    "simplification": {"geometry", "model", "cql2"},
    "matching": CORE - {"covering"},
    "covering": CORE,
    "tracking": CORE - {"covering"},
    "overlay": CORE,
    "broker": CORE | {"tracking"},
    "web": set(),
    "service": CORE | {"contrada", "jit", "broker", "tracking", "web"},
    "client": set(),
    "report": {"geometry", "cql2", "web"},
    "pipeline": CORE | {"jit", "report", "tracking"},
    "demo": CORE | {"contrada", "pipeline", "report"},
    "papers": CORE | {"contrada", "jit", "overlay", "broker", "pipeline"},
    "cli": CORE
    | {"contrada", "jit", "overlay", "broker", "pipeline", "report", "demo", "papers", "service", "client", "tracking"},
}
# Names that tests may use although they look private, or patch although they are constants.
# NamedTuple, os and IPython document them.
DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace", "_repr_html_", "_repr_svg_"}
FOREIGN = {
    "_fixtureinfo",  # pytest has no other way to tell the fixtures of a test before it runs
    "MAX_WIDTH",  # Typer reads the width of its help from here alone
}
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
MODULES = sorted(PACKAGE.rglob("*.py"))
INNER = {path.stem for path in PACKAGE.iterdir()} - {"__init__"}


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported_modules(path: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, at the top or inside a function."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "contrada":
                yield from (f"contrada.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def imported_folders(path: Path) -> set[str]:
    """Our folders and top-level modules that a file imports; `contrada` stands for the public names."""
    ours = [name.split(".") for name in imported_modules(path) if name.split(".")[0] == "contrada"]
    return {parts[1] if len(parts) > 1 and parts[1] in INNER else "contrada" for parts in ours}


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_import_inward(folder):
    assert folder in ALLOWED, f"{folder}/ has no place in the layers yet"
    shared = set() if folder == "kernels" else SHARED
    for path in (PACKAGE / folder).rglob("*.py"):
        assert imported_folders(path) <= ALLOWED[folder] | {folder} | shared, relative(path)


def test_the_bottom_imports_nothing_of_ours():
    for name in ("amounts.py", "codes.py", "errors.py", "forking.py", "installation.py", "interpreting.py", "shown.py"):
        assert imported_folders(PACKAGE / name) == set()
    for name in ("jit.py", "limits.py", "doors.py"):
        assert imported_folders(PACKAGE / name) <= {"errors", "interpreting"}


def test_allowed_imports_have_no_cycle():
    TopologicalSorter({folder: allowed - {folder} for folder, allowed in ALLOWED.items()}).prepare()


def module_name(path: Path) -> str:
    """The full name of a module of ours."""
    parts = ("contrada", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_at_the_top(path: Path) -> Iterator[str]:
    """Modules of ours that a file imports when it is imported itself."""
    known = {module_name(other) for other in MODULES}
    waiting: list[ast.stmt] = list(tree_of(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module or ""
        elif isinstance(node, ast.If):
            waiting += node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            waiting += node.body


def test_no_module_imports_itself_through_others():
    imports = {module_name(path): set(imported_at_the_top(path)) - {module_name(path)} for path in MODULES}
    TopologicalSorter(imports).prepare()  # its error names the modules of a circle


def test_no_two_classes_share_a_name():
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(relative(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_kernels_import_only_numpy_and_numba():
    for path in (PACKAGE / "kernels").rglob("*.py"):
        outside = {name.split(".")[0] for name in imported_modules(path)} - {"contrada", "numpy", "numba"}
        assert outside <= set(sys.stdlib_module_names), relative(path)


def test_only_kernels_and_jit_import_numba():
    importing = {
        path.relative_to(PACKAGE).parts[0]
        for path in MODULES
        if {"numba", "llvmlite"} & {name.split(".")[0] for name in imported_modules(path)}
    }
    assert importing <= {"kernels", "jit.py"}


def test_importing_the_package_and_region_free_use_are_light():
    code = "import sys, contrada as ct; ct.compose(ct.Relation.MEETS, ct.Relation.INSIDE); print(*sys.modules)"
    assert HEAVY & set(python("-c", code).stdout.split()) == set()


def test_every_public_name_exists_and_is_documented():
    for name in contrada.__all__:
        assert getattr(contrada, name).__doc__ or name.startswith("__"), name


def test_modules_and_folders_fit_in_the_head():
    paths = [*MODULES, *ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("examples/*.py")]
    for path in paths:
        assert path.stem not in {"utils", "helpers", "common"}, f"{path}: name it after what it does"
        assert len(path.read_text().splitlines()) < MODULE_LINES, path
    for folder in {path.parent for path in paths}:
        assert len(list(folder.glob("*.py"))) <= FOLDER_FILES, folder


def test_functions_fit_on_a_screen():
    for path in MODULES:
        if "kernels" in path.relative_to(PACKAGE).parts:
            continue  # a compiled loop that shares many locals may be longer, with its reason beside it
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= FUNCTION_LINES, f"{relative(path)}: {node.name} has {length} lines"


def own_names(tree: ast.Module) -> set[str]:
    """Names that a file defines itself: functions, classes, and attributes of `self`."""
    own = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            own.add(node.attr)
    return own


def private_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and names of private attributes that are used, private names that are imported, and patched constants."""
    for node in ast.walk(tree):
        names, patched = list[str](), list[str]()
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            names = ".".join(modules).split(".")
        elif isinstance(node, ast.Attribute):
            (names if isinstance(node.ctx, ast.Load) else patched).append(node.attr)
        elif isinstance(node, ast.Call) and called.endswith(("attr", "patch", "patch.object")):
            given = [str(part.value).rpartition(".")[2] for part in node.args[:2] if isinstance(part, ast.Constant)]
            (names if called in ("getattr", "hasattr") else patched).extend(given)
        for name in (*names, *patched):
            is_private = name.startswith("_") and not name.startswith("__")
            if is_private or (name in patched and name.isupper()):
                yield node.lineno, name


def test_tests_reach_the_code_through_public_names():
    """What a test needs beyond them is an argument or a public name of the module: sizes, times, states."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        allowed = own_names(tree_of(path)) | DOCUMENTED | FOREIGN
        uses = sorted(use for use in private_uses(tree_of(path)) if use[1] not in allowed)
        found += [f"{path.relative_to(ROOT)}:{line}: {name}" for line, name in uses]
    assert not found, "\n".join(found)
