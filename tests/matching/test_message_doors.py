"""One message through every door (Python objects, JSON, Arrow, nested or dotted) has one meaning."""

import enum
import fractions
import json
import math
import uuid
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint, FormatError, ForwardingTable, Point, Region, RegionError, message_of
from contrada.overlay.protocol import Publication
from contrada.overlay.space import PeerQueries, Space
from contrada.papers.spatial.counting import CountingMatcher
from effort import examples
from generators.scalars import REFUSED, UNSUPPORTED, boxes, constraints, predicates
from generators.strategies import circles, points, regions
from oracles.plain import predicate_holds

ATTRIBUTES = ("size", "name", "at", "area", "flag", "wind.speed", "wind.from", "a.b.at", "a.b.area")
SQUARE = shapely.box(1, 1, 2, 2)


class Shape:
    """An object of another library that shows itself as GeoJSON."""

    def __init__(self, geometry):
        self.__geo_interface__ = shapely.geometry.mapping(geometry)


@st.composite
def facts(draw):
    """A message in values that every door can carry, most of a kind that is asked about."""
    usual = {
        "number": st.integers(-3, 3) | st.sampled_from([0.5, 0.1, -0.0, 2**53 + 1, 2.0**53, 1e300]),
        "text": st.sampled_from(["", "a", "Ab", "Straße", "É", "%", "POLYGON ((0 0, 1 0, 1 1, 0 0))", "2000-01-01"]),
        "timestamp": st.datetimes(datetime(1999, 12, 31), datetime(2000, 1, 2)).map(lambda at: at.replace(tzinfo=UTC))
        | st.just(datetime(2000, 1, 1, tzinfo=UTC)),
        "spatial": boxes() | points() | regions() | circles(),
        "boolean": st.booleans(),
    }
    message = {}
    for place, name in enumerate(ATTRIBUTES):
        own = list(usual.values())[place % 5]
        kind = draw(st.sampled_from([own] * 6 + [st.none(), *usual.values()]))
        value = draw(kind)
        if draw(st.integers(0, 7)):
            message[name] = value
    return message


def nested(message):
    """The same with dotted names as mappings in mappings."""
    whole = {}
    for name, value in message.items():
        *path, last = name.split(".")
        inner = whole
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return whole


@st.composite
def as_people_have_it(draw, value):
    """A value in one of the types that other libraries have for it."""
    if isinstance(value, ct.Circle):
        lists = value.to_geojson()
        return draw(st.sampled_from([value, lists, MappingProxyType(lists), value.to_wkb(), bytearray(value.to_wkb())]))
    if isinstance(value, Region | Point):
        shape = value.to_shapely()
        geojson = shapely.geometry.mapping(shape)
        lists = json.loads(json.dumps(geojson))
        ways = [value, shape, Shape(shape), geojson, MappingProxyType(geojson), OrderedDict(lists), value.to_wkb()]
        ways += [bytearray(value.to_wkb()), memoryview(value.to_wkb()), shapely.to_wkb(shape, byte_order=0)]
        return draw(st.sampled_from(ways))
    if isinstance(value, bool):
        return draw(st.sampled_from([value, np.bool_(value), np.array(value), pa.scalar(value)]))
    if isinstance(value, datetime):
        ways = [value, value.replace(tzinfo=None), pd.Timestamp(value), np.datetime64(value.replace(tzinfo=None), "us")]
        ways += [value.astimezone(tz=datetime.now().astimezone().tzinfo), pa.scalar(value)]
        return draw(st.sampled_from(ways))
    if isinstance(value, int):
        return draw(st.sampled_from([value, np.int64(value), Decimal(value), np.array(value), pa.scalar(value)]))
    if isinstance(value, float):
        return draw(st.sampled_from([value, np.float64(value), np.longdouble(value), Decimal(value), pa.scalar(value)]))
    if isinstance(value, str):
        word = enum.StrEnum("Word", {"ONE": value}).ONE
        return draw(st.sampled_from([value, np.str_(value), word, pa.scalar(value)]))
    return draw(st.sampled_from([None, pd.NA]))


def json_of(message):
    """JSON text, and the names of timestamps."""
    times = [name for name, value in message.items() if isinstance(value, datetime)]

    def plain(value):
        if isinstance(value, Region | Point):
            return shapely.geometry.mapping(value.to_shapely())
        if isinstance(value, ct.Circle):
            return value.to_geojson()
        return value.isoformat() if isinstance(value, datetime) else value

    return json.dumps(nested({name: plain(value) for name, value in message.items()})), times


def arrow_of(message):
    """A table of one row: WKB, and structs for dotted names."""

    def plain(value):
        return value.to_wkb() if isinstance(value, Region | Point | ct.Circle) else value

    row = nested({name: plain(value) for name, value in message.items()})
    return pa.Table.from_pylist([row]) if row else pa.table({"nothing": pa.nulls(1)})


@settings(deadline=None, max_examples=examples(150))
@given(data=st.data(), message=facts(), asked=st.lists(predicates(ATTRIBUTES), min_size=1, max_size=6))
def test_every_door_gives_the_answer_of_a_scan(data, message, asked):
    table = ForwardingTable()
    for key, predicate in enumerate(asked):
        table.subscribe(f"subscriber {key % 3}", predicate, key=key)
    expected = {key for key, predicate in enumerate(asked) if predicate_holds(predicate, message)}
    objects = {name: data.draw(as_people_have_it(value)) for name, value in message.items()}
    text, times = json_of(message)
    doors = {"objects": objects, "nested": nested(objects), "json": message_of(text, times=times)}
    doors["message_of"] = message_of(nested(objects))
    counting = CountingMatcher(table)
    for door, given_message in doors.items():
        assert set(table.match_keys(given_message)) == expected, door
        assert set(table.match(given_message)) == {f"subscriber {key % 3}" for key in expected}, door
        assert set(counting.match_keys(given_message)) == expected, door
        explained = {key for key in range(len(asked)) if table.explain(given_message, key).truth}
        assert explained == expected, door
    batch = [*doors.values(), message]
    for messages in (batch, arrow_of(message), arrow_of(message).to_batches()[0]):
        found = table.match_many(messages, by="subscription")
        assert not found.rejected
        assert all(set(found.keys(k)) == expected for k in range(len(found)))


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data(), message=facts(), constraint=constraints(ATTRIBUTES))
def test_an_overlay_reads_messages_like_a_table(data, message, constraint):
    predicate = ct.Predicate([ct.Filter([constraint])])
    space = Space.parse("size,wind.speed,area:region")
    boxes_there = space.boxes_of(predicate)
    if not boxes_there:
        return
    objects = nested({name: data.draw(as_people_have_it(value)) for name, value in message.items()})
    assert space.where(objects) == space.where(message)
    wanted = PeerQueries([predicate], space).matches(Publication(1, space.where(objects), objects))
    assert wanted == predicate_holds(predicate, message)


@pytest.fixture
def table():
    table = ForwardingTable()
    table.subscribe("harbour", "S_INTERSECTS(area, BBOX(0, 0, 4, 4))", key="area")
    table.subscribe("buoy", "wind.speed > 10", key="wind")
    table.subscribe("both", Constraint("size", "is not null"), key="size")
    return table


@pytest.mark.parametrize("value", [*REFUSED, uuid.uuid4(), enum.Enum("E", "A").A, fractions.Fraction(1, 3), {1}])
def test_an_object_that_is_no_value_is_an_error(table, value):
    for attribute in ("area", "wind.speed", "size"):
        for message in ({attribute: value, "name": "x"}, nested({attribute: value})):
            for ask in (table.match, table.match_keys, lambda message: table.explain(message, "wind"), message_of):
                with pytest.raises(ct.ContradaError, match=f"attribute '{attribute}': "):
                    ask(message)
            found = table.match_many([message, {"size": 1}], by="subscription")
            assert [bad.row for bad in found.rejected] == [0]
            assert found.offsets.tolist() == [0, 0, 1]
    assert table.match({"nobody asks": value, "size": 1}) == {"both"}


@pytest.mark.parametrize("shape", ["LINESTRING (0 0, 0 0)", "MULTIPOINT (0 0, 1 1)", "GEOMETRYCOLLECTION EMPTY",
                                   "POLYGON EMPTY", "POINT EMPTY", "POLYGON ((0 0, 1 1, 0 1, 1 0, 0 0))"])  # fmt: skip
def test_geometry_that_is_no_region_point_or_line_is_an_error(table, shape):
    shape = shapely.from_wkt(shape)
    for value in (shape, Shape(shape), shapely.geometry.mapping(shape), shapely.to_wkb(shape)):
        with pytest.raises(RegionError, match="attribute 'area': "):
            table.match({"area": value})


@pytest.mark.parametrize("value", [*UNSUPPORTED, "POLYGON ((0 0, 1 0, 1 1, 0 0))", math.nan, True, date(2000, 1, 1)])
def test_a_value_of_another_kind_than_asked_is_unknown(table, value):
    assert table.match({"area": value, "wind.speed": value, "size": value}) == {"both"}
    assert table.explain({"area": value}, "area").truth is None


@pytest.mark.parametrize("message", [None, 5, "text", b"bytes", [], [{}], ({},), pd.Series({"size": 1}), object()])
def test_a_message_is_a_mapping(table, message):
    for ask in (table.match, table.match_keys, lambda message: table.explain(message, "wind")):
        with pytest.raises(FormatError, match=f"message: need a mapping .*got {type(message).__name__}"):
            ask(message)
    if not isinstance(message, list | tuple | pd.Series):
        with pytest.raises(FormatError, match=f"match_many: need .*got {type(message).__name__}"):
            table.match_many(message, by="subscription")


def test_match_many_says_what_one_message_is_for(table):
    with pytest.raises(FormatError, match="for one message use match"):
        table.match_many({"size": 1}, by="subscription")
    found = table.match_many([{"size": 1}, None, "x", {"size": 2}], by="subscription")
    assert [bad.row for bad in found.rejected] == [1, 2]
    assert table.match_many([], by="subscription").offsets.tolist() == [0]


def test_two_members_of_one_name_are_an_error(table):
    for message in ({"wind": {"speed": 12}, "wind.speed": 3}, {"wind.speed": 3, "wind": {"speed": 12}}):
        with pytest.raises(FormatError, match=r"duplicate attribute 'wind\.speed'"):
            table.match(message)
    assert table.match({"wind": {"speed": None}, "wind.speed": 12}) == {"buoy"}
    assert table.match({"wind": {"speed": 12}, "more": {"x": 1}, "more.x": 2}) == {"buoy"}


def test_mappings_are_nested_to_a_limit(table):
    message = {"size": 1}
    for _ in range(70):
        message = {"a": message}
    with pytest.raises(ct.LimitError, match="CONTRADA_MAX_NESTING"):
        table.match(message)


def test_a_feature_goes_through_message_of(table):
    feature = {"type": "Feature", "properties": {"wind": {"speed": 12}}, "geometry": shapely.geometry.mapping(SQUARE)}
    with pytest.raises(FormatError, match=r"contrada\.message_of"):
        table.match(feature)
    assert table.match(message_of(feature)) == {"buoy"}
    assert table.match({"type": "Feature", "size": 1}) == {"both"}


def test_the_crs_of_a_value_is_compared():
    table = ForwardingTable()
    table.subscribe("x", Constraint("area", ct.Relation.INSIDE, Region.box(0, 0, 4, 4, crs="EPSG:25832")))
    for srid, fits in ((25832, True), (4326, False), (0, True)):
        shape = shapely.set_srid(SQUARE, srid)
        for value in (shape, shapely.to_wkb(shape, include_srid=True)):
            if fits:
                assert table.match({"area": value}) == {"x"}
            else:
                with pytest.raises(ct.CrsError, match="attribute 'area'"):
                    table.match({"area": value})


def test_meaning_does_not_depend_on_other_subscriptions():
    one, other = ForwardingTable(), ForwardingTable()
    for table in (one, other):
        table.subscribe("there", Constraint("area", "is not null"), key="there")
    other.subscribe("inside", Constraint("area", ct.Relation.INSIDE, Region.box(0, 0, 4, 4)), key="inside")
    for value in (SQUARE, SQUARE.wkb, "POLYGON ((1 1, 2 1, 2 2, 1 1))", 5, [1], None, pd.NA, {"x": 1}):
        assert ("there" in one.match({"area": value})) == ("there" in other.match({"area": value}))
    for table in (one, other):
        with pytest.raises(RegionError, match="attribute 'area'"):
            table.match({"area": b"rubbish"})
        assert table.match_many(pa.table({"area": [b"rubbish"]}), by="subscription").rejected


def test_data_frames_are_batches(table):
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.GeoDataFrame({"area": [SQUARE, None], "size": [None, 1.5]}, geometry="area")
    assert table.match_many(frame, by="subscriber").offsets.tolist() == [0, 1, 2]
    assert table.match_many(pd.DataFrame({"wind.speed": [5, 20]}), by="subscription").offsets.tolist() == [0, 0, 1]


def test_values_of_added_types_stay_what_they_are(own_types):
    class Span(ct.ValueType):
        name, operators = "span", ("longer than",)

        def accepts(self, value):
            return isinstance(value, timedelta | dict) and not (isinstance(value, dict) and "days" not in value)

        def takes(self, operator, operand):
            return isinstance(operand, timedelta)

        def holds(self, operator, operand, value):
            return (timedelta(**value) if isinstance(value, dict) else value) > operand

    ct.register_type(Span())
    table = ForwardingTable()
    table.subscribe("long", Constraint("lasts", "longer than", timedelta(1)))
    assert table.match({"lasts": {"days": 2}}) == table.match({"lasts": timedelta(2)}) == {"long"}
    assert table.match({"lasts": {"days": 1}}) == set()
    assert table.match(message_of({"lasts": {"days": 2}})) == {"long"}


class Contradicting(dict):
    """A dict whose items are others than its own, or cannot be read."""

    def __init__(self, items):
        super().__init__(severity=1, kind="storm")
        self.found = items

    def __len__(self):
        return 1000

    def items(self):
        return self.found()


@pytest.mark.parametrize("wrap", [lambda message: message, lambda message: {"a": message}])
def test_mappings_that_contradict_themselves(wrap):
    table = ForwardingTable()
    table.subscribe("ops", "severity >= 3 OR a.severity >= 3", key="k")
    good = wrap(Contradicting(lambda: [("severity", 4)]))
    assert list(table.match(good)) == ["ops"]
    assert table.explain(good, "k").truth is True
    for bad in (lambda: 1 // 0, lambda: [("a", 1, 2)], lambda: None):
        message = wrap(Contradicting(bad))
        with pytest.raises(FormatError, match="items of a Contradicting"):
            table.match(message)
        assert [item.row for item in table.match_many([{}, message], by="subscription").rejected] == [1]
