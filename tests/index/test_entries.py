"""Bounds and boxes in entries: shifted ranks, many slots, values that are not there, and boxes that are rounded."""

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada.index.entries import box_groups, filters_of, grouped_boxes, outwards, shifts_of
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


WITHIN = "S_INTERSECTS(area, $geometry)"


def squares(count, side, seed):
    """Return squares of whole coordinates, so that many share edges, as boxes and as a column of WKB."""
    low = np.random.default_rng(seed).integers(-side, side, (count, 2)).astype(float)
    boxes = np.concatenate([low, low + 3], axis=1)
    return boxes, ct.RegionArray.from_regions([ct.Region.box(*box) for box in boxes.tolist()]).to_wkb()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 255, 257, 4095, 4097, 9000])
@pytest.mark.parametrize("asked", ["kind = $kind", "v BETWEEN $low AND $high", "kind <> $kind"])
def test_boxes_of_entries_exclude_no_match(count, asked):
    """Groups of 16 that are full, not full, and shared by two constants; entries by constant, interval, presence."""
    rng = np.random.default_rng(count)
    boxes, geometry = squares(count, 40, count)
    kinds, low = rng.integers(0, 3, count), rng.integers(0, 9, count)
    high = low + rng.integers(0, 9, count)
    rows = {"geometry": geometry, "kind": [f"k{kind}" for kind in kinds], "low": low, "high": high}
    table = ct.ForwardingTable()
    table.subscribe_many(pa.table({"key": np.arange(count), **rows}), template=f"{WITHIN} AND {asked}")
    table.pack()
    values = {"kind = $kind": (kinds, np.equal), "kind <> $kind": (kinds, np.not_equal)}
    for x, y, kind, v, size in rng.integers([-42, -42, 0, 0, 0], [44, 44, 4, 18, 3], (80, 5)).tolist():
        area = ct.Region.box(x, y, x + size, y + size) if size else ct.Point(x, y)
        holds = (boxes[:, 0] <= x + size) & (boxes[:, 2] >= x) & (boxes[:, 1] <= y + size) & (boxes[:, 3] >= y)
        own, compare = values.get(asked, (None, None))
        holds &= (low <= v) & (v <= high) if compare is None else compare(own, kind)
        message = {"area": area, "kind": f"k{kind}", "v": v}
        assert list(table.match_keys(message)) == np.flatnonzero(holds).tolist()
        assert list(table.match_many([message], by="subscription").rows) == np.flatnonzero(holds).tolist()
        assert not table.match_keys({"kind": message["kind"], "v": v})


@pytest.mark.jitless
def test_boxes_grow_outwards():
    rng = np.random.default_rng(5)
    sizes = 10.0 ** rng.integers(-120, 121, (500, 4)) * rng.choice([-1, 1], (500, 4)) * rng.random((500, 4))
    low, high = np.minimum(sizes[:, :2], sizes[:, 2:]), np.maximum(sizes[:, :2], sizes[:, 2:])
    boxes = np.concatenate([low, high], axis=1)
    made = outwards(boxes)
    assert (made[:, :2] <= boxes[:, :2]).all()
    assert (made[:, 2:] >= boxes[:, 2:]).all()
    groups = grouped_boxes(boxes)
    assert len(groups) == box_groups(500) == 32 + 2 + 1
    assert np.array_equal(groups[:31].reshape(31, 4, 16).transpose(0, 2, 1).reshape(-1, 4), made[:496])
    assert (groups[-1].reshape(4, 16)[:2, :2].min(axis=1) <= low.min(axis=0)).all()
    assert (groups[-1].reshape(4, 16)[2:, :2].max(axis=1) >= high.max(axis=0)).all()


@pytest.mark.jitless
def test_points_at_corners_that_float32_cannot_hold():
    corners = [(0.1, -0.1), (9e119, -9e119), (2e-120, 3.5e38), (16777217.0, -16777217.0), (1e-40, 1 / 3)]
    table = ct.ForwardingTable()
    for k, (x, y) in enumerate(corners):
        u, v = np.nextafter(x, np.inf), np.nextafter(y, np.inf)
        table.subscribe(k, {"op": "and", "args": [
            {"op": "=", "args": [{"property": "kind"}, "a"]},
            {"op": "s_intersects", "args": [{"property": "area"}, {"type": "Polygon", "coordinates": [
                [[x, y], [u, y], [u, v], [x, v], [x, y]]]}]},
        ]})  # fmt: skip
    table.pack()
    for k, (x, y) in enumerate(corners):
        for point in ((x, y), (np.nextafter(x, np.inf), y), (x, np.nextafter(y, np.inf))):
            assert list(table.match({"kind": "a", "area": ct.Point(*point)})) == [k]
        assert not table.match({"kind": "a", "area": ct.Point(np.nextafter(x, -np.inf), y)})


TEXTS = ["", "\0", "a", "a\0", "a" + 7 * "\0", "a" + 8 * "\0", "abcdefg", "abcdefgh", "abcdefgh\0", "abcdefghi",
         "abcdefghj", "abcdefghjk", "b", "é", "ééééé", "éééé", 20 * "z", 19 * "z"]  # fmt: skip


@pytest.mark.jitless
@pytest.mark.parametrize("more", [0, 3, 40])
def test_texts_that_begin_alike(more):
    """Ranks compare the first eight bytes as a number: equal heads, zeros, and constants beyond those counted."""
    constants = TEXTS + [f"abcdefgh{k:03}" for k in range(more)]
    table = ct.ForwardingTable()
    for text in constants:
        table.subscribe(f"= {text}", ct.Constraint("kind", "=", text))
        table.subscribe(f"< {text}", ct.Constraint("kind", "<", text))
    table.pack()
    for text in [*constants, "abcdefgh000x", "ab", "abcdefg\x01", "zz", "\x00\x00", "abcdefghi\0"]:
        below = {f"< {other}" for other in constants if text.encode() < other.encode()}
        assert set(table.match({"kind": text})) == below | ({f"= {text}"} & {f"= {other}" for other in constants})


def test_endings_that_are_alike():
    endings = ["", "h", "gh", "bcdefgh", "abcdefgh", "xabcdefgh", "yabcdefgh", "xyabcdefgh"]
    table = ct.ForwardingTable()
    for ending in endings:
        table.subscribe(ending, ct.Constraint("kind", "like", f"%{ending}"))
    table.pack()
    for text in [*endings, "zzxyabcdefgh", "g", "fgh"]:
        assert set(table.match({"kind": text})) == {ending for ending in endings if text.endswith(ending)}


@pytest.mark.jitless
def test_ranks_of_numbers_between_doubles():
    """Constants with rests: whole numbers beyond doubles, more of them than are counted, some with equal keys."""
    constants = [2**60 + k for k in range(40)] + [0.5, -1, 2**53, 2**53 + 1, 2**53 + 2]
    table = ct.ForwardingTable()
    for number in constants:
        table.subscribe(f"= {number}", ct.Constraint("v", "=", number))
        table.subscribe(f"<= {number}", ct.Constraint("v", "<=", number))
    table.pack()
    for v in [*constants, 2**60 - 1, 2**60 + 40, 2**53 + 3, 0, -2, 2**62, float(2**60)]:
        expected = {f"<= {number}" for number in constants if v <= number}
        assert set(table.match({"v": v})) == expected | {f"= {number}" for number in constants if v == number}
