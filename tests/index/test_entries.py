"""Coarse bounds in entries: shifted ranks, more slots than a byte names, and values that are not there."""

import numpy as np
import pyarrow as pa

import contrada as ct
from contrada.index.entries import filters_of, shifts_of
from contrada.index.scalars import ScalarIndex
from contrada.matching.store.storage import open_table


def test_bounds_of_many_constants_rule_out_nothing_that_is_satisfied(tmp_path):
    rng = np.random.default_rng(3)
    count = 40_000
    low = rng.random((count, 3)).round(6)
    high = low + rng.random((count, 3)).round(6) * 0.3
    rows = {f"l{k}": low[:, k] for k in range(3)} | {f"h{k}": high[:, k] for k in range(3)}
    asked = " AND ".join(f"v{k} BETWEEN $l{k} AND $h{k}" for k in range(3))
    table = ct.ForwardingTable()
    table.subscribe_many(pa.table({"key": np.arange(count), **rows}), template=asked)
    table.pack()
    table.save(tmp_path / "saved")
    scalars = open_table(tmp_path / "saved").level.scalars
    assert isinstance(scalars, ScalarIndex)
    assert shifts_of(np.diff(scalars.arrays.const_base)).max() > 0
    some = rng.integers(0, count, 60)
    values = np.concatenate([rng.random((60, 3)), low[some], high[some]])  # also at the very ends
    for value in values.tolist():
        holds = ((low <= value) & (value <= high)).all(axis=1)
        message = {f"v{k}": value[k] for k in range(3)}
        assert list(table.match_keys(message)) == np.flatnonzero(holds).tolist()
        del message["v1"]
        assert not table.match_keys(message)


def test_more_attributes_than_a_byte_names(tmp_path):
    table = ct.ForwardingTable()
    for k in range(600):
        table.subscribe(k, f"a{k} = 1 AND a{(k + 7) % 600} > 2 AND a{(k + 300) % 600} < 5")
    table.pack()
    table.save(tmp_path / "saved")
    entries = open_table(tmp_path / "saved").level.scalars.arrays.entries
    assert (filters_of(entries) < 600).all()
    assert (entries[:, 0] >> np.uint64(48) == 0).all()
    for k in range(600):
        message = {f"a{k}": 1, f"a{(k + 7) % 600}": 3, f"a{(k + 300) % 600}": 4}
        assert list(table.match(message)) == [k]
        assert not table.match({**message, f"a{(k + 300) % 600}": 5})
        assert not table.match({f"a{k}": 1, f"a{(k + 7) % 600}": 3})
