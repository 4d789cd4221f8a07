"""Nested and lying WKB and WKT: an error or a rejected row, in a process that goes on."""

import struct
import subprocess
import sys
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada import kernels
from contrada.codes import GOOD, MALFORMED, NESTED, WRONG_TYPE
from contrada.geometry.outline import simplified
from contrada.geometry.wellknown import shapes_from_wkb, shapes_from_wkt
from contrada.limits import limit

POINT = ct.Point(1, 2).to_wkb()


def collection(depth, inner=POINT):
    return struct.pack("<BII", 1, 7, 1) * depth + inner


def test_a_collection_in_itself_is_rejected_at_every_door():
    """In a process of its own, since this ended it."""
    code = """
import struct, io, sys, pyarrow as pa, contrada as ct
from contrada.formats.reading import read_messages
from generators.columnar import arrow_bytes
deep = struct.pack("<BII", 1, 7, 1) * 20_000 + ct.Point(1, 2).to_wkb()
text = "GEOMETRYCOLLECTION(" * 20_000 + "POINT(1 2)" + ")" * 20_000
rows = pa.array([deep, ct.Point(3, 4).to_wkb()])
def refuse(call, value):
    try:
        call(value)
    except ct.ContradaError as error:
        assert "nested too deeply (more than 64 levels; CONTRADA_MAX_NESTING)" in str(error) or "wrong" in str(error)
    else:
        raise SystemExit(f"{call} took it")
for one, column in ((ct.Point, ct.PointArray), (ct.Region, ct.RegionArray)):
    refuse(one.from_wkb, deep)
    refuse(one.from_wkt, text)
    refuse(column.from_wkb, [deep])
    refuse(column.from_wkb, [deep.hex()])
    refuse(column.from_arrow, rows)
refuse(ct.RegionArray.from_wkt, [text])
assert [bad.row for bad in ct.read_points(rows).rejected] == [0]
stream = arrow_bytes(pa.table({"area": rows}))
csv = f"id,geometry\\n1,{text}\\n2,POINT(1 2)\\n".encode()
for data, format, buffer in ((stream, "arrow", None), (stream, "arrow", 1.0), (csv, "csv", None)):
    read = list(read_messages(io.BytesIO(data), format, buffer=buffer))
    assert [type(item).__name__ for item in read] == ["Rejected", "Read"], read
"""
    subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], check=True, timeout=300)


@pytest.mark.jitless
def test_depth_is_counted_as_in_the_limit():
    most = limit("nesting")
    found = shapes_from_wkb([collection(most - 1), collection(most), collection(0)])
    assert found.faults.tolist() == [GOOD, NESTED, GOOD]
    assert shapely.get_coordinates(found.geometries[0]).tolist() == [[1, 2]]
    texts = ["(" * most + ")" * most, "(" * (most + 1) + ")" * (most + 1), "()" * (most + 1)]
    assert shapes_from_wkt(texts).faults.tolist() == [MALFORMED, NESTED, MALFORMED]


@pytest.mark.jitless
def test_counts_are_checked_against_the_bytes():
    head = struct.Struct("<BII").pack
    huge = [head(1, kind, 2**32 - 1) + bytes(40) for kind in range(2, 8)]
    huge += [head(1, 3, 1) + struct.pack("<I", 2**32 - 1) + bytes(64), head(1, 7, 2) + POINT, POINT[:-1], b"", b"\1"]
    assert shapes_from_wkb(huge).faults.tolist() == [MALFORMED] * len(huge)
    regions = ct.read_regions(huge)
    assert len(regions.rejected) == len(huge)


@pytest.mark.jitless
def test_types_that_are_not_read():
    codes = [*range(8, 18), 0, 4001, 5007, 65_537, 0x10007]
    rows = [struct.pack("<BII", 1, code, 0) for code in codes]
    assert shapes_from_wkb(rows).faults.tolist() == [WRONG_TYPE] * len(codes)
    assert shapes_from_wkb([collection(1, row) for row in rows]).faults.tolist() == [WRONG_TYPE] * len(codes)
    with pytest.raises(ct.RegionError, match="wrong geometry type CircularString"):
        ct.Region.from_wkb(rows[0])
    texts = "CIRCULARSTRING(0 0,1 1,2 0)", "GEOMETRYCOLLECTION(CURVEPOLYGON((0 0,1 1,2 0,0 0)))", "TIN EMPTY"
    reads = product((ct.Region.from_wkt, ct.Point.from_wkt), texts)
    for read, value in [(ct.Point.from_wkb, rows[0]), *reads]:
        with pytest.raises(ct.RegionError, match="curves, surfaces and triangles are not supported"):
            read(value)


@pytest.mark.parametrize("text", ["POINT(\ud800 1)", "POINT(1 2)\0", "POINT(1 2", "", "\u0660", "POINT(é 1)", "(" * 9])
def test_text_that_is_no_wkt(text):
    for read in (ct.Point.from_wkt, ct.Region.from_wkt):
        with pytest.raises(ct.RegionError, match="malformed"):
            read(text)
    with pytest.raises(ct.ContradaError):
        ct.parse(f"S_INTERSECTS(a, {text})")


@pytest.mark.jitless
def test_what_shapely_reads_is_read():
    shapes = [
        shapely.Point(1, 2), shapely.LineString([(0, 0), (1, 1)]), shapely.box(0, 0, 1, 1), shapely.Point(),
        shapely.MultiPoint([(0, 0), (1, 1)]), shapely.MultiLineString([[(0, 0), (1, 1)]]), shapely.MultiPolygon(),
        shapely.GeometryCollection([shapely.Point(0, 0), shapely.GeometryCollection([shapely.box(0, 0, 1, 1)])]),
        shapely.Point(1, 2, 3), shapely.from_wkt("POINT ZM (1 2 3 4)"), shapely.from_wkt("MULTIPOINT M ((1 2 3))"),
    ]  # fmt: skip
    shapes += [shapely.set_srid(shape, 4326) for shape in shapes]
    for flavour in ("iso", "extended"):
        for order in (0, 1):
            rows = [
                shapely.to_wkb(shape, output_dimension=4, byte_order=order, flavor=flavour,
                               include_srid=flavour == "extended")
                for shape in shapes
            ]  # fmt: skip
            found = shapes_from_wkb(rows)
            assert (found.faults == GOOD).all()
            assert shapely.equals_identical(found.geometries, shapely.from_wkb(rows)).all()
            hexed = shapes_from_wkb([row.hex() for row in rows])
            assert shapely.equals_identical(hexed.geometries, found.geometries).all()


@pytest.mark.jitless
def test_kernels_check_offsets_they_are_given():
    data = np.frombuffer(POINT, np.uint8)
    for offsets in ([0, 999], [-5, 21], [21, 0], [2**62, 2**62 + 21]):
        faults, kinds, srids = (np.empty(1, np.int64) for _ in range(3))
        positions, missing = np.array(offsets, np.int64), np.zeros(1, np.uint8)
        kernels.scan_wkb(data, positions, missing, np.empty(64, np.int64), faults)
        assert faults[0] == MALFORMED
        regions, totals = np.empty(2, np.int64), np.empty(3, np.int64)
        kernels.count_wkb(data, positions, missing, faults, kinds, srids, regions, totals)
        assert faults[0] == MALFORMED
        assert totals.tolist() == [0, 0, 0]


def test_drawings_leave_out_what_is_nested():
    assert simplified(pa.array([collection(20_000), POINT])).is_null().to_pylist() == [True, False]
