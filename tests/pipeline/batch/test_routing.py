"""What decides where filters and messages go, without Spark: skew, sizes of batches, splitting in memory."""

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
import shapely
from sample_tables import square

import contrada as ct
from contrada.cql2 import parse
from contrada.errors import TableError
from contrada.pipeline import artifact_cache as tables
from contrada.pipeline.partitioned.layouts import layout_of
from contrada.pipeline.partitioned.matching import first_tasks, task_counts
from contrada.pipeline.partitioned.routing import ROUTED_BYTES, ROUTED_ROWS, match_routed, route_batches
from contrada.pipeline.partitioned.scanning import LARGEST_BOXES, sample_batches
from contrada.pipeline.partitioned.sizing import too_large
from contrada.pipeline.partitioned.splitting import split
from generators.filters_of_every_kind import expected

TEMPLATE = "S_INTERSECTS(area, $geometry)"


pytestmark = pytest.mark.usefixtures("own_cache")


def sent(areas, **further):
    """Messages as they are sent to Python: a number, an id, attributes by their places."""
    count = len(areas)
    columns = [pa.array(np.arange(count)), pa.array([None] * count, pa.string()), pa.array(areas, pa.binary())]
    columns += [pa.array(values) for values in further.values()]
    return pa.record_batch(columns, ["number", "id", *(f"c{k}" for k in range(1 + len(further)))])


def routed(made, batch, names=("area",)):
    wide = [k for k, part in enumerate(made.partitions) if part.is_wide]
    return list(route_batches(iter([batch]), router=made.router, names=names, wide=wide))


def answers(made, batch, names, by):
    """Rows of the answer to a batch, each with every match in it."""
    for part in match_routed(iter(routed(made, batch, names)[:-1]), made, names, by):
        yield from ((row, one) for row in part.to_pylist() for one in row["found"])


def grid(side):
    return [square(k % side, k // side, 0.5) for k in range(side * side)]


def split_grid(side, partitions, place):
    """A square of side times side regions, split."""
    rows = pa.table({"key": np.arange(side * side), "geometry": grid(side)})
    made, bad = split(rows, parse(TEMPLATE), str(place), partitions)
    assert bad == []
    return made


def test_one_filter_that_matches_everything_is_seen_among_many(tmp_path):
    rng = np.random.default_rng(3)
    small = rng.uniform(0, 1000, (50_000, 2))
    boxes = np.concatenate([small, small + 1], axis=1)
    boxes[31_337] = [-10, -10, 2000, 2000]
    heads = pa.StructArray.from_arrays(
        [pa.array(["area"] * len(boxes)), *(pa.array(boxes[:, k].copy()) for k in range(4))],
        ["attribute", "xmin", "ymin", "xmax", "ymax"],
    )
    lists = pa.ListArray.from_arrays(pa.array(np.arange(len(boxes) + 1, dtype=np.int32)), heads)
    sample = pa.Table.from_batches(sample_batches(iter([pa.record_batch([lists], ["heads"])])))
    weights = np.asarray(sample.column("weight"))
    assert np.count_nonzero(weights == 0) == LARGEST_BOXES + 1  # and the row of those that may be anywhere
    assert weights.sum() == pytest.approx(50_000)
    layout = layout_of(sample, 8)
    assert layout.wide == (8, 1)
    found = layout.find(("area",), np.zeros(len(boxes), np.int32), boxes, np.arange(len(boxes)))
    assert np.flatnonzero(found == 8).tolist() == [31_337]
    assert np.bincount(found, minlength=8)[:8].max() < 1.2 * 50_000 / 8


def test_a_message_over_everything_goes_everywhere_in_batches_of_some_size(tmp_path):
    made = split_grid(20, 40, tmp_path)
    assert len(made.partitions) == 40
    areas = [square(-1, -1, 30)] * 1500 + [square(0.1, 0.1, 0.1), b"bad", None]
    found = routed(made, sent(areas))
    assert max(batch.num_rows for batch in found) == ROUTED_ROWS
    table = pa.Table.from_batches(found)
    kept = table.filter(table.column("partition").is_valid())
    assert np.bincount(np.asarray(kept.column("number"))).tolist() == [40] * 1500 + [1]
    assert set(kept.column("fan").to_pylist()) == {40, 1}
    refused = table.filter(table.column("reason").is_valid())
    assert refused.column("number").to_pylist() == [1501]
    counts = [row["fan"] for row in table.to_pylist() if row["partition"] is None and row["reason"] is None]
    assert counts == [1503]


def test_large_messages_are_cut_by_their_bytes(tmp_path):
    made = split_grid(20, 10, tmp_path)
    round_ = shapely.to_wkb(shapely.Point(10, 10).buffer(30, quad_segs=500))
    found = routed(made, sent([round_] * 300))
    assert max(batch.nbytes for batch in found) < ROUTED_BYTES + 8 * len(round_)
    assert sum(batch.num_rows for batch in found) == 300 * 10 + 1


@pytest.mark.parametrize("by", ["subscription", "subscriber"])
def test_split_and_routed_rows_are_those_of_one_table(tmp_path, by):
    near = "S_INTERSECTS(area, POLYGON(({0} 0, {1} 0, {1} 9, {0} 9, {0} 0)))"
    asked = [near.format(k, k + 2) for k in range(30)]
    asked += [f"NOT {near.format(k, k + 2)}" for k in range(5)]
    asked += ["area IS NULL", "area IS NOT NULL AND size > 1", f"{near.format(4, 5)} AND NOT (size > 1)"]
    asked += [f"{near.format(1, 2)} OR {near.format(25, 26)} OR size = 3"]
    names = [f"s{k % 4}" for k in range(len(asked))]
    whole = ct.ForwardingTable()
    for key, (who, text) in enumerate(zip(names, asked, strict=True)):
        whole.subscribe(who, text, key)
    rows = pa.table({"key": np.arange(len(asked)), "subscriber": names, "filter": asked})
    made, bad = split(rows, None, str(tmp_path), 5)
    assert bad == []
    assert made.has_shared
    assert made.subscriptions == len(asked)
    areas = [None, square(-5, -5, 60), square(1.2, 1, 0.1), square(100, 100, 1), square(24, 1, 3), None]
    sizes = [None, 1, 2, None, 3, 3]
    batch = sent(areas, size=sizes)
    names, found = ("subscriber", "key") if by == "subscription" else ("subscriber",), set()
    for row, one in answers(made, batch, ("area", "size"), by):
        pair = (row["number"], *(one[name] for name in names))
        assert row["is_shared"] or pair not in found  # what is not marked is told once
        found.add(pair)
    messages = {"message_id": range(len(areas)), "area": pa.array(areas, pa.binary()), "size": sizes}
    assert found == set(expected(whole, pa.table(messages), by)[0])


def test_messages_without_the_attribute(tmp_path):
    rows = pa.table({"key": [1, 2, 3], "filter": ["area IS NULL", "size IS NULL", "S_INTERSECTS(area, POINT(1 1))"]})
    made, _ = split(rows, None, str(tmp_path), 2)
    batch = pa.record_batch([pa.array([0, 1]), pa.array(["a", "a"])], ["number", "id"])
    keys = sorted((row["number"], one["key"]) for row, one in answers(made, batch, (), "subscription"))
    assert keys == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_rows_of_a_template_that_are_bad_are_told(tmp_path):
    rows = pa.table({"geometry": [*grid(5), b"bad", shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)]))]})
    made, bad = split(rows, parse(TEMPLATE), str(tmp_path), 3)
    assert [row for row, _ in bad] == [25, 26]
    assert made.subscriptions == made.filters == 25
    empty, none = split(rows.slice(0, 0), parse(TEMPLATE), str(tmp_path), 3)
    assert (empty.partitions, empty.subscriptions, none) == ((), 0, [])


def test_hot_partitions_have_several_tasks_that_come_first():
    counts = [500, 90_000, 4_000, 0]
    tasks = task_counts(counts, 20)
    assert tasks == (1, 19, 1, 0)
    assert first_tasks(counts, tasks) == [20, 0, 19, 21]


def test_small_partitions_stay_open_unless_addresses_are_limited(tmp_path, monkeypatch):
    made = split_grid(10, 4, tmp_path)
    for part in made.partitions:
        tables.opened_part(part.artifact)
    assert tables.open_digests() == [part.artifact.digest for part in made.partitions]
    limit = tables.resource.RLIMIT_AS
    monkeypatch.setattr(tables.resource, "getrlimit", lambda what: (1 << 31, 1 << 31) if what == limit else None)
    tables.opened_part(made.router)
    assert tables.open_digests() == [made.router.digest]


def test_want_of_memory_is_told(tmp_path, monkeypatch, spark):
    assert too_large(ValueError("no"), spark) is None
    told = str(too_large(RuntimeError("numpy._core._exceptions._ArrayMemoryError: Unable to allocate"), spark))
    assert 'use plan="partitioned"' in told
    made = split_grid(2, 1, tmp_path)
    monkeypatch.setattr(tables.ForwardingTable, "open", mock.Mock(side_effect=OSError(12, "Cannot allocate memory")))
    with pytest.raises(TableError, match="does not fit into the memory of the Python worker"):
        tables.opened_part(made.partitions[0].artifact)
