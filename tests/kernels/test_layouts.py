"""Tables of addresses: what Python writes by name, kernels read by name; nothing else makes an array of an address."""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import contrada
from contrada import codes
from contrada.kernels.match.tables import LAYOUTS
from contrada.kernels.runtime.layout import NUMBER, AddressLayout, Field
from contrada.kernels.runtime.pointers import reader

PACKAGE = Path(contrada.__file__).parent
KERNELS = {path: ast.parse(path.read_text()) for path in sorted((PACKAGE / "kernels").rglob("*.py"))}
SMALL = AddressLayout([Field("corners", "f8", 2), Field("first", NUMBER), Field("counts", "i8", 0, "", True)])


def arrays_for(layout: AddressLayout) -> dict[str, Any]:
    """Return random values for all fields, arrays of different lengths, the first of them empty."""
    rng = np.random.default_rng(len(layout.fields))
    made: dict[str, Any] = {}
    for rows, field in enumerate(layout.fields.values()):
        shape = (rows, field.columns) if field.columns else rows
        made[field.name] = rows if field.type == NUMBER else rng.integers(0, 200, shape).astype(field.type)
    return made


@pytest.mark.jitless
@pytest.mark.parametrize("name", LAYOUTS)
def test_kernels_read_what_python_wrote(name):
    arrays = arrays_for(LAYOUTS[name])
    read = reader(LAYOUTS[name], "Whole")
    found = numba.njit(lambda table: read(table))(LAYOUTS[name].addresses(arrays))
    assert list(found._fields) == list(arrays)
    for field, wanted, got in zip(LAYOUTS[name].fields.values(), arrays.values(), found, strict=True):
        assert np.array_equal(wanted, got), field.name
        assert field.type == NUMBER or (got.dtype, got.shape) == (wanted.dtype, wanted.shape), field.name


def test_a_reader_of_an_unknown_field_is_refused():
    with pytest.raises(KeyError, match="frobnicated"):
        reader(SMALL, "Whole", {"corners": "frobnicated"})


def test_layouts_that_begin_alike_have_the_same_places():
    for name in LAYOUTS["items"].fields:
        places = {LAYOUTS[other].at(name) for other in ("items", "tree", "residual")}
        assert len(places) == 1, name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"corners": np.zeros((2, 2), np.float32)}, r"corners is float32 \(2, 2\), not float64 \(n, 2\)"),
        ({"corners": np.zeros((2, 3))}, r"corners is float64 \(2, 3\), not float64 \(n, 2\)"),
        ({"corners": np.zeros(4)}, r"corners is float64 \(4,\), not float64 \(n, 2\)"),
        ({"counts": np.zeros((2, 1), np.int64)}, r"counts is int64 \(2, 1\), not int64 \(n\)"),
        ({"corners": np.zeros((2, 4)).T.reshape(4, 2, order="F")}, "corners is not contiguous"),
        ({"counts": np.zeros(4, np.int64)[::2]}, "counts is not contiguous"),
        ({"counts": np.frombuffer(bytes(16), np.int64)}, "counts is read-only"),
        ({"counts": 3}, "counts is 3, not an array"),
        ({"first": np.zeros(1, np.int64)}, "first is an array, not a number"),
        ({"other": 3}, "does not have them: other"),
    ],
)
def test_values_that_do_not_fit_are_refused(changes, reason):
    good = {"corners": np.zeros((3, 2)), "first": 7, "counts": np.zeros(2, np.int64)}
    assert SMALL.addresses(good)[[1, 2, 4]].tolist() == [3, 7, 2]
    with pytest.raises(ValueError, match=reason):
        SMALL.addresses(good | changes)


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="misses these fields, or does not have them: corners, counts"):
        SMALL.addresses({"first": 7})


def calls_of(tree: ast.AST, names: set[str]) -> list[ast.Call]:
    """The calls of functions with these names."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


def assigned(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    """The names that a module assigns to at the top, each with the whole value."""
    pairs = [(target, node.value) for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return [(name.id, value) for target, value in pairs for name in ast.walk(target) if isinstance(name, ast.Name)]


def test_no_kernel_counts_places_in_a_table_by_hand():
    pairs = [pair for tree in KERNELS.values() for pair in assigned(tree)]
    readers = {name for name, value in pairs if value in calls_of(value, {"reader"})}
    places = {name for name, value in pairs if isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".at")}
    functions = [node for tree in KERNELS.values() for node in tree.body if isinstance(node, ast.FunctionDef)]
    seen = set()
    for function in functions:
        tables = {ast.unparse(call.args[0]) for call in calls_of(function, readers)}
        seen |= tables
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) in tables:
                assert ast.unparse(node.slice) in places, f"{function.name}, line {node.lineno}: {ast.unparse(node)}"
    assert seen == {"table", "further", "scalars", "scratch", "trees.trees[k]"}


def test_only_readers_make_arrays_of_addresses():
    for path in KERNELS:
        text = path.read_text()
        found = [word for word in ("from_address", "carray", "populate_array") if word in text]
        assert not found or path.name == "pointers.py", path.name


def test_no_module_repeats_a_code():
    shared = {name for name in vars(codes) if name.isupper()}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("contrada", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for constant in {name for name, _ in assigned(ast.parse(path.read_text()))} & shared:
            if name != "contrada.codes":
                value = getattr(import_module(name), constant)
                assert not np.array_equal(value, getattr(codes, constant)), f"{name} repeats {constant}"
