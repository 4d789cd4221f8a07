"""Entry points of the package, found by looking, and doors of all that are public functions and methods.

Every parameter gets every awkward value, alone and with others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import shapely

import contrada as ct
from contrada.formats.records import FORMATS
from contrada.matching.store.tuning import Tuning
from hostile.awkward import VALUES, made
from hostile.registry import Door
from hostile.use import use

# Methods that Python calls for operators and that users' values reach.
OPERATORS = frozenset(
    ("__getitem__", "__contains__", "__eq__", "__or__", "__ror__", "__and__", "__rand__", "__sub__", "__le__")
)
READERS = ("read_messages", "read_subscriptions", "read_subscription_table", "read_zones", "read_changes")
SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]
WKB = ct.Region.box(0, 0, 4, 4).to_wkb()
POINT_WKB = ct.Point(1, 2).to_wkb()
WKT = "POLYGON((0 0, 4 0, 4 4, 0 0))"
CIRCLE = ct.Circle((1, 2), 3)
LINE = ct.Line([(0, 0), (4, 4)])
POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]}
BY_SUBSCRIBER = ("ForwardingTable.simplified", "SubscriberTable.match", "SubscriberTable.match_many")


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


def tracker() -> ct.Tracker:
    """A tracker with a subscription."""
    made = ct.Tracker(track="id")
    made.subscribe("k1", "S_INTERSECTS(area, BBOX(0, 0, 4, 4))", "enter, exit")
    return made


# An object of each class whose methods are called.
SUBJECTS: dict[str, Callable[[], Any]] = {
    "ForwardingTable": table,
    "SubscriberTable": lambda: table().simplified(),
    "Matches": lambda: table().match({"severity": 4}),
    "ManyMatches": lambda: table().match_many([{"severity": 4}, {}], by="subscription"),
    "CoveringIndex": index,
    "Tracker": tracker,
    "TrackEvents": lambda: tracker().publish([{"id": 1, "area": ct.Point(1, 1)}]),
    "Region": lambda: ct.Region.box(0, 0, 4, 4),
    "RegionArray": lambda: ct.RegionArray.from_regions([ct.Region.box(0, 0, k, k) for k in (1, 2, 3)]),
    "Line": lambda: ct.Line([(0, 0), (4, 4)]),
    "LineArray": lambda: ct.LineArray.from_lines([ct.Line([(0, 0), (k, k)]) for k in (1, 2, 3)]),
    "Point": lambda: ct.Point(1, 2),
    "Circle": lambda: ct.Circle((1, 2), 3),
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
GOOD: dict[str, Any] = {
    **dict.fromkeys(("wrap", "densify", "crs", "other", "progress", "threads", "to_crs", "buffer", "unit"), None),
    **dict.fromkeys(("repair", "casei", "accenti", "withdraw", "replace", "extra", "srid"), False),
    **dict.fromkeys(("halo", "verify"), True),
    **dict.fromkeys(("holes", "times"), ()),
    **dict.fromkeys(("xmin", "ymin", "item", "index"), 0),
    **dict.fromkeys(("x", "ymax", "k", "density"), 1),
    **dict.fromkeys(("y", "xmax"), 2),
    **dict.fromkeys(("mask", "Constraint.value", "Relation.value", "LineRelation.value"), 3),
    **dict.fromkeys(("attribute", "name"), "severity"),
    **dict.fromkeys(("path", "directory"), "not there"),
    **dict.fromkeys(("relation", "relations", "first", "second"), ct.Relation.MEETS),
    **dict.fromkeys((f"RelationSet.__{name}__.other" for name in ("sub", "le", "or", "and")), ct.RelationSet.ALL),
    **dict.fromkeys((f"{entry}.by" for entry in BY_SUBSCRIBER), "subscriber"),
    **dict.fromkeys(("ForwardingTable.subscribe.key", "CoveringIndex.subscribe.key"), "new"),
    "ForwardingTable.keys_of.rows": [0], "ForwardingTable.subscribers_of.rows": [0],
    "metres": 1000.0, "Region.wrapped.wrap": "shorter", "RegionArray.wrapped.wrap": "shorter",
    "shell": SQUARE, "xy": [[0, 0], [1, 1]], "a": ct.Region.box(0, 0, 4, 4), "b": ct.Region.box(2, 2, 6, 6),
    "text": WKT, "Point.from_wkt.text": "POINT(1 2)", "data": WKB, "Point.from_wkb.data": POINT_WKB,
    "value": POLYGON, "Point.from_geojson.value": {"type": "Point", "coordinates": [1, 2]},
    "message_of.value": {"a": 1}, "distance": 2.0, "geometry": shapely.box(0, 0, 1, 1), "point": shapely.Point(1, 2),
    "values": [WKB], "PointArray.from_wkb.values": [POINT_WKB],
    "PointArray.from_arrow.values": pa.array([POINT_WKB]), "RegionArray.from_arrow.values": pa.array([WKB]),
    "PointArray.from_shapely.values": [shapely.Point(1, 2)],
    "RegionArray.from_shapely.values": [shapely.box(0, 0, 1, 1)],
    "RegionArray.from_wkt.values": [WKT], "RegionArray.from_geojson.values": [POLYGON],
    "center": (1, 2), "radius": 3.0, "quad_segs": 8, "Circle.from_wkb.data": CIRCLE.to_wkb(),
    "Circle.from_text.text": CIRCLE.to_text(), "Circle.from_geojson.value": CIRCLE.to_geojson(),
    "parts": SQUARE, "lines": [ct.Line(SQUARE)],
    "Line.from_wkb.data": LINE.to_wkb(), "Line.from_wkt.text": LINE.to_wkt(),
    "Line.from_geojson.value": LINE.to_geojson(), "Line.from_shapely.geometry": LINE.to_shapely(),
    "LineArray.from_wkb.values": [LINE.to_wkb()], "LineArray.from_wkt.values": [LINE.to_wkt()],
    "LineArray.from_geojson.values": [LINE.to_geojson()], "LineArray.from_shapely.values": [LINE.to_shapely()],
    "LineArray.from_arrow.values": pa.array([LINE.to_wkb()]), "read_lines.source": [LINE.to_wkb()],
    "regions": [ct.Region.box(0, 0, 1, 1)], "source": [WKB], "read_points.source": [POINT_WKB],
    "operator": ">=", "escape": "\\", "key": "k1", "subscriber": "ops", "what": "severity >= 3", "by": "subscription",
    "constraints": [ct.Constraint("severity", ">=", 3)],
    "filters": [ct.Filter([ct.Constraint("severity", ">=", 3)])],
    "rows": pa.table({"geometry": [WKB], "key": ["new"]}), "template": "overlaps(area, $geometry)",
    "message": {"severity": 4, "area": ct.Region.box(2, 2, 6, 6)}, "messages": [{"severity": 4}],
    "Simplification.plus.other": ct.Simplification(), "tuning": Tuning(),
    **dict.fromkeys(("table", "time", "expire_after", "alias", "end", "clock", "now", "exit_after"), None),
    **dict.fromkeys(("Tracker.subscribe.first", "Tracker.subscribe_many.first", "Tracker.watch_all.first"), "enter"),
    "track": "id", "late": "ignore", "query": "S_INTERSECTS(area, BBOX(0, 0, 4, 4))", "on": ["enter", "exit"],
    **dict.fromkeys(("ax", "color", "label", "ForwardingTable.plot.attribute"), None), "limit": 2,
    "exit_buffer": 0.5, "Tracker.subscribe.key": "new", "keys": ["k1"],
}  # fmt: skip
# Parameters whose values hold others: lists of awkward values are tried as well.
SEQUENCES = frozenset((
    "shell", "holes", "values", "regions", "constraints", "filters", "rows", "messages", "xy", "item", "relations",
    "source", "on", "keys", "parts", "lines",
))  # fmt: skip
# An Arrow array whose offsets are wrong kills Python when it is printed: only what takes Arrow must survive it.
BROKEN = "arrow broken binary"
TAKES_ARROW = (
    "read_lines", "LineArray.from_arrow", "LineArray.from_wkb",
    "read_regions", "read_points", "RegionArray.from_arrow", "RegionArray.from_wkb", "PointArray.from_arrow",
    "PointArray.from_wkb",
)  # fmt: skip
# What operators and enumerations, which are Python's, may raise.
OF_PYTHON = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
MADE_HERE = (
    "Explanation", "Simplification", "Matches", "ManyMatches", "Rejection", "Stats", "TrackEvent", "TrackEvents",
)  # fmt: skip
# Why entry points take nothing from outside.
REASONS = {
    **dict.fromkeys(MADE_HERE, "made by the package alone"),
    "Column": "a name and nothing more; Constraint checks it",
    "SubscriberTable": "made by ForwardingTable.simplified",
    "FaultCode": "an enumeration of codes",
    "ValueType": "users derive from it; their methods are their own",
    "register_type": "users derive the type that it takes",
    "LineArray": "wraps arrays that the package has checked; users call the from_ methods",
    "Line._from_column": "wraps a column that the package has checked",
    "RegionArray": "wraps arrays that the package has checked; users call the from_ methods",
    "PointArray.of_checked": "wraps arrays that the package has checked",
    "Region._from_column": "wraps a column that the package has checked",
    "Simplification.plus": "adds up reports that the package made",
}


def entry_points(formats: Iterable[str] = FORMATS) -> dict[str, Any]:
    """Every entry point by name: `Region.from_wkt`, `contrada match`, `read_messages[cap]`."""
    return dict(chain(_public(), _commands(), _others(formats)))


def _public() -> Iterator[tuple[str, Any]]:
    for name in ct.__all__:
        value = getattr(ct, name)
        if inspect.isclass(value):
            yield name, value
            if not issubclass(value, BaseException):
                yield from ((f"{name}.{method}", found) for method, found in _methods(value))
        elif callable(value):
            yield name, value


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods of a class that this package defines and that take something."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("contrada")]
    for name, value in chain.from_iterable(vars(base).items() for base in ours):
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function) and (name in OPERATORS or not name.startswith("_")):
            yield name, value


def _commands() -> Iterator[tuple[str, Any]]:
    import typer

    from contrada.cli.main import app

    todo = [("contrada", typer.main.get_command(app))]
    for name, command in todo:
        if inner := getattr(command, "commands", None):
            todo += [(f"{name} {each}", found) for each, found in inner.items()]
        else:
            yield name, command


def _others(formats: Iterable[str]) -> Iterator[tuple[str, Any]]:
    from contrada import pipeline

    yield from ((f"{reader}[{format}]", reader) for reader in READERS for format in formats)
    yield from ((f"pipeline.{name}", name) for name in pipeline.__all__)
    yield "overlay frames", None


def parameters(entry: str, value: Any) -> list[str]:
    """The parameters of an entry point, without the object itself."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if inspect.isclass(value):
        function = value.__init__ if "__init__" in vars(value) else value.__new__
    named = list(inspect.signature(function).parameters)
    return named if isinstance(value, staticmethod) or not (inspect.isclass(value) or "." in entry) else named[1:]


def good_name(entry: str, parameter: str) -> str | None:
    """The name of a good value in GOOD, if there is one."""
    return next((name for name in (f"{entry}.{parameter}", parameter) if name in GOOD), None)


def reason_for(entry: str, value: Any) -> str | None:
    """Why an entry point takes nothing from outside, if it does not."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "an error takes what the package gives it"
    if entry.startswith("ValueType."):
        return REASONS["ValueType"]
    return REASONS.get(entry) or (None if parameters(entry, value) else "takes nothing")


def drive(entry: str, value: Any, case: Mapping[str, Any]) -> object:
    """Call an entry point with good values but for those of the case, and use what it returns."""
    owner, _, method = entry.partition(".")
    call: Callable[..., Any] = value
    if method:
        is_static = isinstance(value, classmethod | staticmethod)
        call = getattr(getattr(ct, owner) if is_static else SUBJECTS[owner](), method)
    taken = set(parameters(entry, value))
    positional, named = [], {}
    for name, parameter in inspect.signature(call).parameters.items():
        good = good_name(entry, name)
        if name not in taken or (name not in case and good is None):
            continue
        given = made(case[name]) if name in case else GOOD[good]
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            named[name] = given
        else:
            positional.append(given)
    return use(call(*positional, **named))


def corpus(entry: str, value: Any) -> dict[str, dict[str, Any]]:
    """Good values, then every awkward value for every parameter."""
    found: dict[str, dict[str, Any]] = {"good": {}}
    for parameter in parameters(entry, value):
        may_break = entry in TAKES_ARROW and parameter in ("values", "source")
        names = [name for name in VALUES if name != BROKEN or may_break]
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
        if all(good_name(entry, parameter) is not None for parameter in parameters(entry, value)):
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
    if entry.rpartition(".")[2].startswith("__") or entry.startswith(("Relation", "LineRelation")):
        return OF_PYTHON
    return (OSError,) if "path" in entry or entry.rpartition(".")[2] in ("open", "save", "verify") else ()
