"""Doors of all public functions and methods: every parameter gets every awkward value, alone and with others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import pyarrow as pa
import shapely

import contrada as ct
from contrada.matching.tuning import Tuning
from hostile.awkward import VALUES, made
from hostile.enumeration import entry_points
from hostile.registry import Door
from hostile.use import use

SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]
WKB = ct.Region.box(0, 0, 4, 4).to_wkb()
POINT_WKB = ct.Point(1, 2).to_wkb()


def table() -> ct.ForwardingTable:
    """A table with something of every kind; two subscriptions have one subscriber."""
    made = ct.ForwardingTable()
    made.subscribe("ops", ct.Constraint("area", ct.Relation.OVERLAPS, ct.Region.box(0, 0, 4, 4)), key="k1")
    made.subscribe("ops", "severity >= 3 OR kind LIKE 'fl%' AND is_open", key="k2")
    made.subscribe(7, "S_INTERSECTS(place, POINT(1 2)) AND t > TIMESTAMP('2024-01-01T00:00:00Z')", key=3)
    return made


def index() -> ct.CoveringIndex:
    """A covering index with a filter in it."""
    made = ct.CoveringIndex()
    made.subscribe("k1", "severity >= 3")
    return made


# An object of each class whose methods are called.
SUBJECTS: dict[str, Callable[[], Any]] = {
    "ForwardingTable": table,
    "SubscriberTable": lambda: table().simplified(),
    "Matches": lambda: table().match({"severity": 4}),
    "ManyMatches": lambda: table().match_many([{"severity": 4}, {}], by="subscription"),
    "CoveringIndex": index,
    "Region": lambda: ct.Region.box(0, 0, 4, 4),
    "RegionArray": lambda: ct.RegionArray.from_regions([ct.Region.box(0, 0, k, k) for k in (1, 2, 3)]),
    "Point": lambda: ct.Point(1, 2),
    "PointArray": lambda: ct.PointArray([[0, 0], [1, 1]]),
    "Constraint": lambda: ct.Constraint("a", "=", 1),
    "Filter": lambda: ct.Filter([ct.Constraint("a", "=", 1)]),
    "Predicate": lambda: ct.parse("a = 1 OR b = 2"),
    "Relation": lambda: ct.Relation.MEETS,
    "RelationSet": lambda: ct.RelationSet.S_INTERSECTS,
    "Simplification": ct.Simplification,
    "Explanation": lambda: table().explain({"severity": 4}, "k2"),
}
# Good values of parameters: of one entry point, or of all that have a parameter of this name.
GOOD: dict[str, Callable[[], Any]] = {
    "shell": lambda: SQUARE,
    "holes": tuple,
    "crs": lambda: None,
    "repair": lambda: False,
    "text": lambda: "POLYGON((0 0, 4 0, 4 4, 0 0))",
    "Point.from_wkt.text": lambda: "POINT(1 2)",
    "data": lambda: WKB,
    "Point.from_wkb.data": lambda: POINT_WKB,
    "value": lambda: {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]},
    "Point.from_geojson.value": lambda: {"type": "Point", "coordinates": [1, 2]},
    "Constraint.value": lambda: 3,
    "Relation.value": lambda: 3,
    "message_of.value": lambda: {"a": 1},
    "geometry": lambda: shapely.box(0, 0, 1, 1),
    "point": lambda: shapely.Point(1, 2),
    "xmin": lambda: 0, "ymin": lambda: 0, "xmax": lambda: 2, "ymax": lambda: 1,
    "x": lambda: 1, "y": lambda: 2,
    "xy": lambda: [[0, 0], [1, 1]],
    "values": lambda: [WKB],
    "PointArray.from_wkb.values": lambda: [POINT_WKB],
    "PointArray.from_arrow.values": lambda: pa.array([POINT_WKB]),
    "PointArray.from_shapely.values": lambda: [shapely.Point(1, 2)],
    "RegionArray.from_arrow.values": lambda: pa.array([WKB]),
    "RegionArray.from_shapely.values": lambda: [shapely.box(0, 0, 1, 1)],
    "RegionArray.from_wkt.values": lambda: ["POLYGON((0 0, 4 0, 4 4, 0 0))"],
    "RegionArray.from_geojson.values": lambda: [{"type": "Polygon", "coordinates": [SQUARE]}],
    "regions": lambda: [ct.Region.box(0, 0, 1, 1)],
    "item": lambda: 0,
    "other": lambda: None,
    "Simplification.plus.other": ct.Simplification,
    "RelationSet.__sub__.other": lambda: ct.RelationSet.ALL,
    "RelationSet.__le__.other": lambda: ct.RelationSet.ALL,
    "RelationSet.__or__.other": lambda: ct.RelationSet.ALL,
    "RelationSet.__and__.other": lambda: ct.RelationSet.ALL,
    "relation": lambda: ct.Relation.MEETS,
    "relations": lambda: ct.Relation.MEETS,
    "mask": lambda: 3,
    "attribute": lambda: "severity",
    "operator": lambda: ">=",
    "casei": lambda: False, "accenti": lambda: False, "escape": lambda: "\\",
    "name": lambda: "severity",
    "constraints": lambda: [ct.Constraint("severity", ">=", 3)],
    "filters": lambda: [ct.Filter([ct.Constraint("severity", ">=", 3)])],
    "k": lambda: 1, "withdraw": lambda: False,
    "key": lambda: "k1",
    "subscriber": lambda: "ops",
    "ForwardingTable.subscribe.key": lambda: "new",
    "CoveringIndex.subscribe.key": lambda: "new",
    "what": lambda: "severity >= 3",
    "replace": lambda: False,
    "rows": lambda: pa.table({"geometry": [WKB], "key": ["new"]}),
    "ForwardingTable.keys_of.rows": lambda: [0],
    "ForwardingTable.subscribers_of.rows": lambda: [0],
    "template": lambda: "overlaps(area, $geometry)",
    "progress": lambda: None,
    "ForwardingTable.simplified.by": lambda: "subscriber",
    "SubscriberTable.match.by": lambda: "subscriber",
    "SubscriberTable.match_many.by": lambda: "subscriber",
    "index": lambda: 0,
    "source": lambda: [WKB],
    "read_points.source": lambda: [POINT_WKB],
    "message": lambda: {"severity": 4, "area": ct.Region.box(2, 2, 6, 6)},
    "messages": lambda: [{"severity": 4}],
    "by": lambda: "subscription",
    "threads": lambda: None,
    "a": lambda: ct.Region.box(0, 0, 4, 4), "b": lambda: ct.Region.box(2, 2, 6, 6),
    "density": lambda: 1.0, "halo": lambda: True, "extra": lambda: False,
    "first": lambda: ct.Relation.MEETS, "second": lambda: ct.Relation.MEETS,
    "path": lambda: "not there", "directory": lambda: "not there",
    "verify": lambda: True, "tuning": Tuning,
    "times": tuple, "to_crs": lambda: None, "buffer": lambda: None,
    "srid": lambda: False,
}  # fmt: skip
# Parameters whose values hold others: lists of awkward values are tried as well.
SEQUENCES = frozenset(
    (
        "shell",
        "holes",
        "values",
        "regions",
        "constraints",
        "filters",
        "rows",
        "messages",
        "xy",
        "item",
        "relations",
        "source",
    )
)
# An Arrow array whose offsets are wrong kills Python when it is printed: only what takes Arrow must survive it.
BROKEN = "arrow broken binary"
TAKES_ARROW = (
    "read_regions",
    "read_points",
    "RegionArray.from_arrow",
    "RegionArray.from_wkb",
    "PointArray.from_arrow",
    "PointArray.from_wkb",
)
# Why entry points take nothing from outside.
REASONS = {
    "Column": "a name and nothing more; Constraint checks it",
    "Explanation": "made by the package alone",
    "Simplification": "made by the package alone",
    "SubscriberTable": "made by ForwardingTable.simplified",
    "Matches": "made by the package alone",
    "ManyMatches": "made by the package alone",
    "Rejection": "made by the package alone",
    "Stats": "made by the package alone",
    "FaultCode": "an enumeration of codes",
    "ValueType": "users derive from it; their methods are their own",
    "register_type": "users derive the type that it takes",
    "RegionArray": "wraps arrays that the package has checked; users call the from_ methods",
    "RegionArray.of_kernel_arrays": "wraps arrays that the package has checked",
    "PointArray.of_checked": "wraps arrays that the package has checked",
    "Region.from_column": "wraps a column that the package has checked",
    "Simplification.plus": "adds up reports that the package made",
}


def parameters(entry: str, value: Any) -> list[str]:
    """The parameters of an entry point, without the object itself."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if inspect.isclass(value):
        function = value.__init__ if "__init__" in vars(value) else value.__new__
    named = list(inspect.signature(function).parameters)
    return named if isinstance(value, staticmethod) or not (inspect.isclass(value) or "." in entry) else named[1:]


def good_value(entry: str, parameter: str) -> Callable[[], Any] | None:
    """A function that makes a good value, if one is known."""
    return GOOD.get(f"{entry}.{parameter}", GOOD.get(parameter))


def reason_for(entry: str, value: Any) -> str | None:
    """Why an entry point takes nothing from outside, if it does not."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "an error takes what the package gives it"
    if entry.startswith("ValueType."):
        return REASONS["ValueType"]
    if entry in REASONS:
        return REASONS[entry]
    return None if parameters(entry, value) else "takes nothing"


def drive(entry: str, value: Any, case: Mapping[str, Any]) -> object:
    """Call an entry point with good values but for those of the case, and use what it returns."""
    bound: dict[str, Any] = {}
    for parameter in parameters(entry, value):
        if parameter in case:
            bound[parameter] = made(case[parameter])
        elif (good := good_value(entry, parameter)) is not None:
            bound[parameter] = good()
    owner, _, method = entry.partition(".")
    if inspect.isclass(value):
        signature = inspect.signature(value)
        call: Callable[..., Any] = value
    elif method:
        kind = getattr(ct, owner)
        is_bound = isinstance(value, classmethod | staticmethod)
        call = getattr(kind if is_bound else SUBJECTS[owner](), method)
        signature = inspect.signature(call)
    else:
        call, signature = value, inspect.signature(value)
    positional, named = [], {}
    for name, parameter in signature.parameters.items():
        if name not in bound:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL):
            positional.append(bound[name])
        else:
            named[name] = bound[name]
    return use(call(*positional, **named))


def corpus(entry: str, value: Any) -> dict[str, dict[str, Any]]:
    """Good values, then every awkward value for every parameter."""
    found: dict[str, dict[str, Any]] = {"good": {}}
    for parameter in parameters(entry, value):
        names = [
            name for name in VALUES if name != BROKEN or (entry in TAKES_ARROW and parameter in ("values", "source"))
        ]
        found.update({f"{parameter}: {name}": {parameter: name} for name in names})
        if parameter in SEQUENCES:
            found.update({f"{parameter}: list of {name}": {parameter: [name]} for name in names if name != BROKEN})
    return found


@cache
def argument_doors() -> dict[str, Door]:
    """A door for every public function or method that takes something."""
    doors = {}
    for entry, value in entry_points().items():
        if entry.partition(".")[0] not in ct.__all__ or reason_for(entry, value) is not None:
            continue
        if all(good_value(entry, parameter) is not None for parameter in parameters(entry, value)):
            name = f"{entry}()"
            doors[name] = Door(
                name, (entry,), partial(drive, entry, value), partial(corpus, entry, value), weight=0.3,
                refusals=refusals(entry),
            )  # fmt: skip
    return doors


def refusals(entry: str) -> tuple[type[BaseException], ...]:
    """Errors that the documentation of an entry point names beside ContradaError: those of Python's own protocols."""
    if entry in ("ForwardingTable.simplify", "ForwardingTable.simplified"):
        return (TypeError,)  # what `progress`, a function of the caller, raises
    if entry.rpartition(".")[2].startswith("__") or entry.startswith("Relation"):
        return (
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            RecursionError,
        )  # operators and enumerations are Python's
    return (OSError,) if "path" in entry or entry.rpartition(".")[2] in ("open", "save", "verify") else ()
