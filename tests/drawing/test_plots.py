"""Plots of tables and regions on Matplotlib axes."""

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import PolyCollection

import contrada as ct
from console import python

RING = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 5 2, 5 5, 2 5, 2 2))"


@pytest.fixture(autouse=True)
def _closed():
    """Matplotlib keeps figures until they are closed."""
    yield
    pyplot.close("all")


@pytest.fixture
def table():
    made = ct.ForwardingTable()
    for key, query in {
        "hit": "S_INTERSECTS(area, BBOX(0, 0, 4, 4))",
        "mild": "S_INTERSECTS(area, BBOX(2, 2, 6, 6)) AND severity >= 3",
        "near": "S_INTERSECTS(area, BBOX(5, 0, 7, 1))",
        "far": "S_INTERSECTS(area, BBOX(500, 500, 501, 501))",
        "scalar": "severity = 1",
    }.items():
        made.subscribe(key, query, key=key)
    return made


MESSAGE = {"area": ct.Region.box(1, 1, 4, 4), "severity": 1}


def labels(axes):
    return axes.get_legend_handles_labels()[1]


def written(axes):
    return {text.get_text() for text in axes.texts}


def boxes(axes, label):
    """The boxes of regions that are drawn under a label that begins so."""
    (found,) = [one for one in axes.collections if one.get_label().startswith(label)]
    return sorted(path.get_extents().extents.tolist() for path in found.get_paths())


def colour_at(axes, x, y):
    """The colour of a place in a plot as it is drawn."""
    axes.set(xlim=(-1, 12), ylim=(-1, 12))
    axes.texts[0].set_visible(False)
    axes.get_legend().set_visible(False)
    axes.figure.canvas.draw()
    picture = np.asarray(axes.figure.canvas.buffer_rgba())
    column, row = axes.transData.transform((x, y)).astype(int)
    return picture[len(picture) - row, column].tolist()


def test_hits_and_misses_are_told_apart(table):
    axes = table.plot(MESSAGE)
    assert axes.get_title() == "2 of 5 subscriptions hit"
    assert labels(axes) == ["missed by region: 1", "missed by another condition: 1", "hit: 2, drawn: 1", "message"]
    assert boxes(axes, "hit") == [[0, 0, 4, 4]]
    assert boxes(axes, "missed by region") == [[5, 0, 7, 1]]
    assert boxes(axes, "missed by another") == [[2, 2, 6, 6]]
    assert boxes(axes, "message") == [[1, 1, 4, 4]]
    assert written(axes) == {"hit", "mild", "near"}
    assert axes.get_legend() is not None
    assert axes.get_aspect() == 1
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")


def test_everything_that_is_drawn_is_in_view(table):
    axes = table.plot(MESSAGE)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert left < 0 < 7 < right
    assert bottom < 0 < 6 < top
    axes.figure.canvas.draw()


def test_packed_tables_draw_the_same(table):
    before = labels(table.plot(MESSAGE))
    table.pack()
    axes = table.plot(MESSAGE)
    assert labels(axes) == before
    assert boxes(axes, "missed by another") == [[2, 2, 6, 6]]


def test_axes_are_taken_and_returned(table):
    _, (first, second) = pyplot.subplots(1, 2)
    assert table.plot(MESSAGE, ax=second) is second
    assert not first.collections
    assert ct.Region.box(0, 0, 1, 1).plot(ax=first) is first
    assert len(pyplot.get_fignums()) == 1


def test_removed_subscriptions_are_not_drawn(table):
    table.unsubscribe("hit")
    table.unsubscribe("near")
    axes = table.plot(MESSAGE)
    assert axes.get_title() == "1 of 3 subscriptions hit"
    assert written(axes) == {"mild"}


def test_equal_regions_of_several_subscriptions_are_all_found(table):
    for k in range(3):
        table.subscribe("more", "S_INTERSECTS(area, BBOX(5, 0, 7, 1))", key=f"more {k}")
    table.pack()
    assert "missed by region: 4" in labels(table.plot(MESSAGE))


def test_points_are_dots_and_the_nearest_regions_are_misses(table):
    axes = table.plot({"area": ct.Point(100, 100)})
    assert axes.get_title() == "0 of 5 subscriptions hit"
    assert "missed by region: 4" in labels(axes)
    (dot,) = [line for line in axes.lines if line.get_label() == "message"]
    assert dot.get_xydata().tolist() == [[100, 100]]
    alone = ct.ForwardingTable()
    alone.subscribe("ann", "S_EQUALS(area, POINT(1 2))", key="k")
    axes = alone.plot({"area": ct.Point(1, 2)})
    assert labels(axes) == ["hit: 1", "message"]
    axes.figure.canvas.draw()


def test_at_most_so_many_are_drawn():
    table = ct.ForwardingTable()
    for k in range(60):
        table.subscribe("ann", f"S_INTERSECTS(area, BBOX({k}, 0, {k + 1}, 1))", key=k)
    axes = table.plot({"area": ct.Region.box(0.5, 0.2, 29.5, 0.8)}, limit=7)
    assert labels(axes) == ["missed by region: 7", "hit: 30, drawn: 7", "message"]
    assert written(axes) == {str(k) for k in [*range(7), *range(30, 37)]}
    assert not written(table.plot({"area": ct.Region.box(0.5, 0.2, 59.5, 0.8)})), "too many labels"


def test_regions_of_a_predicate_are_drawn_with_holes_and_once():
    table = ct.ForwardingTable()
    table.subscribe("ann", f"S_INTERSECTS(area, {RING}) AND a = 1 OR S_INTERSECTS(area, {RING}) AND a = 2", key="k")
    axes = table.plot({"area": ct.Region.box(0, 0, 1, 1), "a": 2})
    (drawn,) = [one for one in axes.collections if one.get_label() == "hit: 1"]
    (path,) = drawn.get_paths()
    assert path.codes.tolist().count(path.MOVETO) == 2
    beside, within, outside = (colour_at(axes, *place) for place in ((8, 2), (3.5, 3.5), (11, 5)))
    assert beside != outside
    assert within == outside, "it is a hole"


def test_the_attribute_can_be_chosen():
    table = ct.ForwardingTable()
    table.subscribe("ann", "S_INTERSECTS(area, BBOX(0, 0, 1, 1)) AND S_INTERSECTS(place, POINT(5 5))", key="k")
    message = {"place": ct.Region.box(4, 4, 6, 6), "area": ct.Region.box(0, 0, 2, 2)}
    assert boxes(table.plot(message, attribute="area"), "message") == [[0, 0, 2, 2]]
    assert boxes(table.plot(message), "message") == [[4, 4, 6, 6]]
    with pytest.raises(ct.ArgumentError, match="attribute: need a region or point of the message"):
        table.plot(message, attribute="severity")


@pytest.mark.parametrize("key", ["$x^$", "_hidden", "<b>", "\\frac{1}{", "a" * 5000, "line\nline", 7])
def test_keys_are_written_as_they_are(key):
    table = ct.ForwardingTable()
    table.subscribe("ann", "S_INTERSECTS(area, BBOX(0, 0, 1, 1))", key=key)
    axes = table.plot({"area": ct.Region.box(0, 0, 2, 2)})
    axes.figure.canvas.draw()
    (text,) = written(axes)
    assert len(text) <= 24
    assert text[:4] == str(key)[:4].replace("\n", "\\n")[:4]


def test_the_crs_is_on_the_axes():
    table = ct.ForwardingTable()
    table.subscribe("ann", ct.Constraint("area", ct.Relation.EQUALS, ct.Region.box(0, 0, 1, 1, crs=25832)))
    assert table.plot({"area": ct.Region.box(0, 0, 1, 1, crs=25832)}).get_xlabel() == "x (EPSG:25832)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: table.plot({"severity": 1}), "no region or point"),
        (lambda table: table.plot(MESSAGE, ax=3), "ax: need Matplotlib axes, got int"),
        (lambda table: table.plot(MESSAGE, limit=0), "limit: need a whole number"),
        (lambda table: table.plot({"area": ct.Region.box(0, 0, 1e110, 1)}), "Matplotlib draws coordinates up to"),
        (lambda _: ct.Region.box(0, 0, 1, 1).plot(color="no colour"), "color: need a colour"),
        (lambda _: ct.Region.box(0, 0, 1, 1).plot(label=3), "label: need text"),
    ],
)
def test_errors_say_what_is_wrong_and_leave_no_figure(table, call, message):
    with pytest.raises(ct.ArgumentError, match=message):
        call(table)
    assert pyplot.get_fignums() == []


def test_columns_are_one_collection():
    column = ct.RegionArray.from_wkt([RING, "POLYGON ((20 0, 21 0, 21 1, 20 0))"])
    axes = column.plot(color="tab:green", label="districts")
    (drawn,) = axes.collections
    assert isinstance(drawn, PolyCollection)
    assert len(drawn.get_paths()) == 2
    assert labels(axes) == ["districts"]
    assert np.allclose(drawn.get_edgecolor()[0][:3], (44 / 255, 160 / 255, 44 / 255))
    assert not ct.RegionArray.from_wkt([]).plot().collections


@pytest.mark.parametrize("box", [(0, 0, 1e90, 1e90), (1e-100, 1e-100, 3e-100, 2e-100), (1e9, 1e9, 1e9 + 1e-5, 1e9 + 1)])
def test_huge_and_tiny_regions_can_be_drawn(box):
    axes = ct.Region.box(*box).plot()
    axes.figure.canvas.draw()
    assert axes.get_xlim()[0] <= box[0] <= box[2] <= axes.get_xlim()[1]


def test_without_matplotlib_the_error_tells_how_to_install_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import contrada as ct\n"
        "for options in ({}, {'color': 'red'}):\n"
        "    try: ct.Region.box(0, 0, 1, 1).plot(**options)\n"
        "    except ct.ContradaError as error: print(error)"
    )
    printed = python("-c", code).stdout.splitlines()
    assert len(printed) == 2
    assert all(line.startswith("plots need Matplotlib; to install it: ") for line in printed)
    assert "[plot]" in printed[0]
