"""Real polygons and real warnings: Spark's rows are those of a single process."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from contrada import pipeline
from effort import slow
from generators.filters_of_every_kind import expected, rows_of

DATA = Path(os.environ.get("CONTRADA_DATA", "/nowhere"))
LARGE = ["paper_rhone_alpes_17048", "paper_socal_85550"]
SETS = ["paper_london_4170", *map(slow, LARGE)]
TEMPLATE = "relation(area, $geometry, 'meets', 'overlaps', 'contains', 'covers', 'covered-by')"
WARNINGS = 2000


def warnings_within(box):
    """Real warnings, the invalid ones among them, moved and scaled so that all lie in a box."""
    wkb = pq.read_table(DATA / "events_nws.parquet", columns=["geometry", "valid"])
    bad = np.flatnonzero(~np.asarray(wkb.column("valid")))
    chosen = np.union1d(np.random.default_rng(3).choice(wkb.num_rows, WARNINGS, replace=False), bad)
    shapes = shapely.from_wkb(wkb.column("geometry").take(chosen).to_numpy())
    low, high = np.array(shapely.total_bounds(shapes)).reshape(2, 2)
    scale = (np.array(box[2:]) - box[:2]) / (high - low)
    return shapely.to_wkb(shapely.transform(shapes, lambda xy: (xy - low) * scale + box[:2]))


@pytest.mark.skipif(not (DATA / "events_nws.parquet").exists(), reason="CONTRADA_DATA names no real sets")
@pytest.mark.parametrize("name", SETS)
def test_real_warnings_against_a_real_set(spark, tmp_path, name):
    rows = pq.read_table(DATA / f"{name}.parquet", columns=["geometry"])
    plain = pa.table({"geometry": rows.column("geometry").cast(pa.binary())})
    pq.write_table(plain, tmp_path / "set.parquet", row_group_size=10_000)
    areas = warnings_within(shapely.total_bounds(shapely.from_wkb(plain.column("geometry").to_numpy())))
    messages = pa.table({"message_id": np.arange(len(areas)), "area": pa.array(areas.tolist(), pa.binary())})
    table = ct.ForwardingTable()
    table.subscribe_many(plain, TEMPLATE)
    right = expected(table, messages)
    assert len(right[0]) > 1000
    assert right[1]
    frames = spark.createDataFrame(messages).repartition(5), spark.read.parquet(str(tmp_path / "set.parquet"))
    matched = pipeline.match(*frames, template=TEMPLATE, artifacts=tmp_path / "artifacts")
    assert matched.compiled.count == len(plain)
    assert rows_of(matched) == right
