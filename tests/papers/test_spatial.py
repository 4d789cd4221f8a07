"""The exhibits of [SPATIAL]: contenders agree, Tables 1 and 2 are checked on lattice polygons, sets come from files."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.errors import FormatError
from contrada.geometry import RegionArray, Relation
from contrada.papers import running
from contrada.papers.exhibit import NotAvailableError
from contrada.papers.network.region_sets import check_set
from contrada.papers.registry import EXHIBITS
from contrada.papers.running import Choice
from contrada.papers.showing import findings, markdown
from contrada.papers.spatial import cgal, drawn_regions, measuring
from contrada.papers.spatial.cgal import CgalPolygons
from contrada.papers.spatial.measuring import (
    CGAL,
    CONTENDERS,
    COUNTING_SAMPLED,
    EXACT,
    GEOS,
    PACKED,
    PAPER_TREE,
    RELATION_NAMES,
    SAMPLED,
    contender,
    measure_gain,
    measure_matching,
    measure_pairs,
    measure_simplification,
)  # fmt: skip
from contrada.papers.spatial.polygon_sets import KINDS, SYNTHETIC, messages_of, polygon_set

BOXES = tuple(drawn_regions.FRAMES)
WORK = {"set": SYNTHETIC, "constraints": 300, "kind": "20 points", "messages": 3, "density": 2_000}


@pytest.fixture
def own_set(tmp_path):
    """A directory with a set of squares, one of which has a hole."""
    squares = [shapely.box(x, y, x + 0.6, y + 0.6) for x in range(6) for y in range(6)]
    ring = shapely.box(0, 0, 9, 9).difference(shapely.box(1, 1, 8, 8))
    wkb = shapely.to_wkb(np.array([*squares, ring]))
    pq.write_table(pa.table({"geometry": pa.array(wkb.tolist(), pa.binary())}), tmp_path / "mine.parquet")
    return tmp_path


@pytest.mark.parametrize("name", [name for name in CONTENDERS if name not in (PACKED, GEOS, CGAL)])
def test_contenders_give_the_same_rows(name):
    workload = polygon_set(SYNTHETIC, 1, None).first(300)
    exact = contender(PACKED, SYNTHETIC, 300, 2_000, 1, None)
    match = contender(name, SYNTHETIC, 300, 20_000, 1, None)
    for message in messages_of(workload, "20 points", 3, 1):
        wrong = len(np.setxor1d(exact(message), match(message)))
        assert wrong <= (3 if "Algorithm 1" in name else 0)


def test_a_timed_row_has_times_matches_and_errors():
    for name in (EXACT, SAMPLED):
        row = measure_matching(WORK | {"contender": name}, 1, None)
        assert row["ms"] > 0
        assert 0 < row["matches"] < 300
        assert row["wrong"] < 0.01
    assert measure_matching(WORK | {"contender": GEOS}, 1, None)["wrong"] == 0


@pytest.mark.slow  # CGAL's headers take half a minute to compile, the first time
def test_cgal_answers_as_our_exact_relation_does():
    try:
        row = measure_matching(WORK | {"contender": CGAL}, 1, None)
    except NotAvailableError as error:
        pytest.skip(str(error))
    assert row["wrong"] == 0
    assert 0 < row["matches"] < 300
    assert row["cgal"].count(".") >= 1
    touching = RegionArray.from_shapely(shapely.box([0, 1, 0, 3], [0, 0, 0, 3], [1, 2, 2, 4], [1, 1, 2, 4]))
    assert CgalPolygons(touching).meets_interior_of(touching[0]).tolist() == [True, False, True, False]
    clockwise = RegionArray.from_shapely(shapely.from_wkt(["POLYGON ((0 0, 0 9, 9 9, 9 0, 0 0))"]))
    assert CgalPolygons(clockwise).meets_interior_of(touching[3]).tolist() == [True]


def test_without_a_compiler_cgal_is_skipped_with_the_reason(tmp_path, monkeypatch):
    exhibit = EXHIBITS["spatial-figure-4a"]
    changes = {"contender": (CGAL, EXACT), "constraints": (20,), "messages": (1,)}
    monkeypatch.setattr(cgal, "cache_directory", lambda: tmp_path)
    monkeypatch.setenv("CXX", "no such compiler")
    cgal.load_cgal.cache_clear()
    told = []
    rows = running.run(Choice(exhibit, exhibit.grid(changes=changes), (1, 2), tmp_path), warn=told.append)
    assert [(row["contender"], row["seed"]) for row in rows] == [(EXACT, 1), (EXACT, 2)]
    assert len(told) == 1
    assert "spatial-figure-4a" in told[0]
    assert "no such compiler" in told[0]
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(NotAvailableError, match="libcgal-dev"):
        cgal.built_program()


def test_simplification_keeps_the_answers_and_drops_filters():
    work = WORK | {"predicates": 5, "matcher": "counting"}
    before, after = (measure_simplification(work | {"simplified": word}, 1, None) for word in ("no", "yes"))
    assert before["matches"] == after["matches"]
    assert after["filters"] < before["filters"] == 150
    table = measure_simplification(work | {"simplified": "yes", "matcher": "table"}, 1, None)
    assert table["matches"] == after["matches"]
    fine = work | {"matcher": COUNTING_SAMPLED, "density": 40_000}
    for word in ("no", "yes"):
        row = measure_simplification(fine | {"simplified": word}, 1, None)
        assert row["matches"] == pytest.approx(before["matches"], abs=0.7), "Algorithm 1 errs now and then"
        assert row["filters"] == (before if word == "no" else after)["filters"]


def test_a_set_of_ones_own_comes_from_a_file(own_set):
    polygons = polygon_set("mine", 1, own_set)
    assert len(polygons.column) == 36, "a polygon with a hole is left out"
    assert polygons.universe == (0, 0, 5.6, 5.6)
    assert polygons.density(11_200) == pytest.approx(1000)
    work = {"set": "mine", "constraints": 0, "kind": "B", "messages": 2}
    gains = [measure_gain(work | {"density": density}, 1, own_set)["gain"] for density in (0, 40_000)]
    assert 0 <= gains[1] <= gains[0] < 0.1


def test_the_bound_of_figure_5_stands_beside_a_hundred_messages_alone():
    exhibit = EXHIBITS["spatial-figure-5"]
    row = {"set": "London", "constraints": 0, "kind": "A", "messages": 100, "density": 10_000, "gain": 0.0, "seed": 1}
    assert "at D = 10,000 at most 0.02 % change" in findings(exhibit, [row])
    assert "at D = 10,000 at most 0.02 % change" not in findings(exhibit, [row | {"messages": 10}])


def test_figure_4a_times_contenders_without_a_density_once():
    exhibit = EXHIBITS["spatial-figure-4a"]
    settings = exhibit.settings(exhibit.grid(changes={"constraints": (1_000,)}))
    counts = Counter(setting["contender"] for setting in settings)
    assert {name for name, count in counts.items() if count == 2} == {SAMPLED, PAPER_TREE}
    times = {(CGAL, 2_000): 9.0, (SAMPLED, 2_000): 3.0, (SAMPLED, 12_000): 6.0}
    rows = [
        {"set": SYNTHETIC, "constraints": 1_000, "kind": "20 points", "messages": 6, "contender": name, "seed": 1,
         "density": density, "ms": ms, "wrong": 0.0}
        for (name, density), ms in times.items()
    ]  # fmt: skip
    found = findings(exhibit, rows)
    assert found["Algorithm 1 is faster than CGAL at D = 12,000 too"]
    assert not found["Algorithm 1 is six times as fast as CGAL"]
    assert "CGAL intersection scan takes 3.0 to 3.0 times as long as Algorithm 1 scan" in markdown(exhibit, rows)
    slow = [row | {"ms": 10.0} if row["density"] == 12_000 else row for row in rows]
    assert not findings(exhibit, slow)["Algorithm 1 is faster than CGAL at D = 12,000 too"]
    assert "Algorithm 1 is faster than CGAL at D = 12,000 too" not in findings(exhibit, rows[:2])


@pytest.mark.parametrize("name", ["rubbish", "other"])
def test_sets_that_are_not_there_are_told(name, tmp_path):
    (tmp_path / "rubbish.parquet").write_text("rubbish")
    with pytest.raises(FormatError, match=name):
        polygon_set(name, 1, tmp_path)
    with pytest.raises(FormatError, match="directory"):
        polygon_set(name, 1, None)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\0b"])
def test_names_of_sets_are_no_paths(name):
    with pytest.raises(FormatError, match="set: need a name"):
        check_set(name)


@pytest.mark.parametrize("corners", [3, 5])
def test_table_1_holds_and_table_2_misses_what_the_errata_say(corners):
    rows = {
        name: measure_pairs({"relation": name, "corners": corners, "pairs": 20_000}, 1, None) for name in RELATION_NAMES
    }
    assert sum(row["found"] for row in rows.values()) == 20_000
    for name, row in rows.items():
        assert row["follow"] == row["found"]
        assert row["missed_corrected"] == 0
        assert bool(row["missed"]) == (name in ("covers", "covered-by")), name


def test_the_printed_tables_are_those_of_the_paper():
    assert {"".join(bits) for bits in measuring.PRINTED_INTERSECTIONS.values()} == {
        "0001", "1001", "1111", "1000", "0100", "0011", "1011", "1100",
    }  # fmt: skip
    assert measuring.PRINTED_BOXES[Relation.COVERS] == (Relation.COVERS, Relation.EQUALS)
    assert Relation.EQUALS not in measuring.PRINTED_BOXES[Relation.DISJOINT]


def test_table_3_stands_beside_whole_sets_alone():
    exhibit = EXHIBITS["spatial-table-3"]
    row = {"set": "London", "kind": "A", "contender": SAMPLED, "constraints": 0, "density": 10_000, "messages": 7}
    row["boxes"] = "area"
    assert exhibit.beside(row) == {"ms": 59.0}
    for other in ({"constraints": 100}, {"density": 2_000}, {"contender": PACKED}, {"set": "mine"}, {"boxes": "sides"}):
        assert exhibit.beside(row | other) == {}
    second = {"set": "London", "kind": "A", "constraints": 0, "predicates": 25, "simplified": "yes", "messages": 7}
    second["density"] = 10_000
    beside = EXHIBITS["spatial-table-3b"].beside
    assert beside(second | {"matcher": "counting"}) == {"ms": 0.75}
    assert beside(second | {"matcher": COUNTING_SAMPLED}) == {"ms": 0.75}
    assert beside(second | {"matcher": COUNTING_SAMPLED, "density": 2_000}) == {}
    assert beside(second | {"matcher": "table"}) == {}
    assert beside(second | {"matcher": "counting", "set": "Rhône-Alpes"}) == {}, "misprinted"


def test_fewer_constraints_are_evaluated_where_boxes_of_messages_are_smaller(own_set):
    work = {"set": "mine", "constraints": 0, "messages": 20, "density": 1_000, "contender": PAPER_TREE}
    shares = {boxes: measure_matching(work | {"kind": "C", "boxes": boxes}, 1, own_set)["evaluated"] for boxes in BOXES}
    assert 0 < shares["sides"] < shares["narrow"] < shares["area"] < 0.5


@pytest.mark.parametrize("boxes", BOXES)
def test_boxes_have_the_sizes_that_a_reading_says(boxes):
    universe = (100.0, 0.0, 300.0, 50.0)
    for kind in KINDS:
        frames = drawn_regions.message_polygons(np.random.default_rng(3), 200, kind, universe=universe, boxes=boxes)[1]
        assert (frames >= universe[:2] * 2).all()
        assert (frames <= universe[2:] * 2).all()
        sides = (frames[:, 2:] - frames[:, :2]) / (200, 50)
        area, long = sides.prod(axis=1), sides.max(axis=1)
        if boxes == "sides":
            assert ((long >= 0.0099) & (long <= 0.2501)).all()
        else:
            assert ((area >= 0.0099) & (area <= 0.2501)).all()
        if boxes == "narrow":
            assert long / sides.min(axis=1) == pytest.approx(10)


def test_lattice_polygons_are_valid():
    shapes = measuring.lattice_polygons(np.random.default_rng(1), 200, 6)
    assert len(shapes) == 200
    assert shapely.is_valid(shapes).all()
    assert RegionArray.from_shapely(shapes).is_simple.all()


def test_table_3_has_no_inverse_where_boxes_decide_every_constraint():
    row = {
        "set": "mine",
        "kind": "C",
        "boxes": "sides",
        "density": 1,
        "constraints": 0,
        "ms": 2.0,
        "wrong": 0.0,
        "evaluated": None,
    }
    told = EXHIBITS["spatial-table-3"].tell(
        [row | {"contender": SAMPLED}, row | {"contender": PAPER_TREE, "ms": 0.5, "evaluated": 0.0}]
    )
    assert "| mine | C | sides | 4.0 | 0.00% | - |" in told
