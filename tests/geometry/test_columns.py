"""Columns of regions and points: batches in, good rows and reasons out; slices, Arrow, files."""

import io
import pickle
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct

TEXTS = [
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))",
    "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 9 5, 9 9, 5 9, 5 5), (6 6, 6 7, 7 7, 6 6)))",
    "POLYGON ((1 1, 2 1, 1 2, 1 1))",
]
# With a bow tie, a null and a point between.
MIXED = [TEXTS[0], "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))", TEXTS[1], None, "POINT(1 1)", *TEXTS[2:]]
SHAPES = shapely.from_wkt(MIXED).tolist()
WKB = shapely.to_wkb(SHAPES).tolist()


@pytest.fixture
def column():
    return ct.RegionArray.from_wkt(TEXTS, crs="EPSG:25832")


def texts(column):
    return [region.to_wkt() for region in column]


@pytest.mark.parametrize(
    ("read", "values"),
    [
        (ct.RegionArray.from_wkt, MIXED),
        (ct.RegionArray.from_wkb, WKB),
        (ct.RegionArray.from_wkb, [data and data.hex() for data in WKB]),
        (ct.RegionArray.from_wkb, pa.array(WKB)),
        (ct.RegionArray.from_wkb, pa.array(WKB, pa.large_binary())),
        (ct.RegionArray.from_wkb, pa.chunked_array([WKB[:3], WKB[3:]])),
        (ct.RegionArray.from_shapely, SHAPES),
        (ct.RegionArray.from_shapely, np.array(SHAPES)),
        (ct.RegionArray.from_arrow, pa.array(MIXED)),
        (ct.RegionArray.from_arrow, pa.array(WKB, pa.binary_view())),
        (ct.RegionArray.from_geojson, shapely.to_geojson(SHAPES).tolist()),
        (ct.RegionArray.from_geojson, [shape and shapely.geometry.mapping(shape) for shape in SHAPES]),
    ],
)
def test_bad_rows_are_set_aside_and_the_rest_goes_on(read, values):
    made = ct.read_regions(values)
    assert texts(made.regions) == TEXTS
    assert made.rows.tolist() == [0, 2, 5, 6]
    assert [(bad.row, bad.reason.split(";")[0]) for bad in made.rejected] == [
        (1, "self-intersection near (2.0, 2.0)"),
        (3, "no geometry (null)"),
        (4, "wrong geometry type Point"),
    ]
    assert made.repaired.size == 0
    assert [bad.fault.value for bad in made.rejected] == ["self-intersection", "null", "point"]
    mended = ct.read_regions(values, repair=True)
    assert mended.rows.tolist() == [0, 1, 2, 5, 6]
    assert mended.repaired.tolist() == [1]
    assert mended.regions[1].area == 8
    reason = r"row 1: self-intersection near \(2.0, 2.0\) \(and 2 more bad rows\)"
    with pytest.raises(ct.RegionError, match=reason) as caught:
        read(values)
    assert (caught.value.row, caught.value.place) == (1, (2.0, 2.0))


def test_rows_slices_masks(column):
    assert column[2].to_wkt() == column[-2].to_wkt() == TEXTS[2]
    assert texts(column[1:3]) == TEXTS[1:3]
    assert column[1:3].arrays.xy is column.arrays.xy
    assert texts(column[::-1]) == TEXTS[::-1]
    assert texts(column[[3, 0, -1]]) == [TEXTS[3], TEXTS[0], TEXTS[3]]
    assert texts(column[np.array([True, False, True, False])]) == [TEXTS[0], TEXTS[2]]
    assert texts(column[1:][[0, 2]]) == [TEXTS[1], TEXTS[3]]
    assert len(column[2:1]) == len(column[[]]) == 0
    assert column[1:3].crs == "EPSG:25832"
    with pytest.raises(IndexError):
        column[4]
    with pytest.raises(IndexError, match="row 4 is outside a column of 4"):
        column[[4]]
    with pytest.raises(IndexError, match="the mask has 2 values, but the column has 4 regions"):
        column[[True, False]]
    assert np.array_equal(column[1:3].bounds, [[0, 0, 10, 10], [0, 0, 9, 9]])


def test_columns_are_values(column):
    assert column == ct.RegionArray.from_wkt(TEXTS)
    assert column != ct.RegionArray.from_wkt(TEXTS[:3])
    assert hash(column) == hash(ct.RegionArray.from_wkt(TEXTS))
    for part in (column, column[1:3], column[[2, 0]]):
        copy = pickle.loads(pickle.dumps(part))
        assert copy == part
        assert copy.crs == part.crs
    with pytest.raises(AttributeError, match="cannot be changed"):
        column.crs = None
    with pytest.raises(ValueError, match="read-only"):
        column.bounds[0] = 0
    assert repr(column) == "<RegionArray of 4 regions, 32 vertices, EPSG:25832>"
    assert column.areas.tolist() == [16, 96, 16, 0.5]
    assert column.is_simple.tolist() == [True, False, False, True]
    assert column.lengths[0] == 16


def test_every_way_out_leads_back(column):
    for part in (column, column[1:3], column[3:], column[:0]):
        for copy in (
            ct.RegionArray.from_wkb(part.to_wkb()),
            ct.RegionArray.from_shapely(part.to_shapely()),
            ct.RegionArray.from_arrow(part.to_arrow()),
            ct.RegionArray.from_regions(list(part)),
        ):
            assert texts(copy) == texts(part)
    assert ct.RegionArray.from_arrow(column.to_arrow()).crs == "EPSG:25832"
    assert ct.RegionArray.from_arrow(column.to_arrow()[2:]) == column[2:]


def test_geoarrow_polygons_separated_and_chunked():
    vertex = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("z", pa.float64())])
    ring = [{"x": x, "y": y, "z": 9.0} for x, y in ((0, 0), (4, 0), (4, 4), (0, 4), (0, 0))]
    array = pa.array([[ring], None, [ring]], pa.list_(pa.list_(vertex)))
    made = ct.read_regions(array)
    assert made.rows.tolist() == [0, 2]
    assert made.regions == ct.RegionArray.from_wkt([TEXTS[0]] * 2)
    assert ct.RegionArray.from_arrow(pa.chunked_array([array[2:], array[:1]])) == made.regions
    assert ct.RegionArray.from_arrow(array[2:]) == made.regions[:1]
    with pytest.raises(ct.RegionError, match="need GeoArrow polygons"):
        ct.RegionArray.from_arrow(pa.array([[1.0]]))
    with pytest.raises(ct.RegionError, match="need a binary column, got"):
        ct.RegionArray.from_arrow(pa.array([1.0]))


def test_geoarrow_crs_comes_from_the_type(column):
    exported = column.to_arrow()
    schema = pa.field(exported.type)
    assert schema.metadata[b"ARROW:extension:name"] == b"geoarrow.multipolygon"
    assert schema.metadata[b"ARROW:extension:metadata"] == b'{"crs": "EPSG:25832"}'


def test_one_column_has_one_crs():
    rows = [shapely.to_wkb(shapely.set_srid(shapely.box(0, 0, 1, 1), srid), include_srid=True) for srid in (4326, 3857)]
    with pytest.raises(ct.CrsError, match=r"row 1: .* differ: EPSG:3857 and EPSG:4326 \(the column's\)"):
        ct.RegionArray.from_wkb(rows)


def test_memory_per_vertex_and_region():
    squares = ct.RegionArray.from_shapely(shapely.box(np.arange(1000.0), 0, np.arange(1000.0) + 1, 1))
    assert squares.nbytes <= 1000 * (4 * 16 + 64)
    assert squares[1:].arrays.xy is squares.arrays.xy


def test_save_and_open_map_the_same_column(column, tmp_path):
    column[1:].save(tmp_path / "column")
    opened = ct.RegionArray.open(tmp_path / "column")
    assert opened == column[1:]
    assert opened.crs == column.crs
    assert isinstance(opened.arrays.xy.base, np.memmap)
    assert ct.relate(opened, column[1:]).tolist() == [3, 3, 3]


@pytest.mark.parametrize("name", ["xy", "ring_offsets", "region_offsets", "ring_flags", "bounds"])
def test_damaged_files_are_errors(column, tmp_path, name):
    column.save(tmp_path / "column")
    file = tmp_path / "column" / f"{name}.npy"
    whole, shorter = file.read_bytes(), io.BytesIO()
    np.save(shorter, np.load(file)[:-1])
    for data, reason in (
        (shorter.getvalue(), "(has|is no)"),
        (whole[:-7], f"has {len(whole) - 7} bytes"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "is damaged: the checksum does not match"),
    ):
        file.write_bytes(data)
        with pytest.raises(ct.RegionError, match=f"{name}.npy {reason}"):
            ct.RegionArray.open(tmp_path / "column")


def test_a_saved_column_is_replaced_only_by_request(column, tmp_path):
    column.save(tmp_path / "column")
    old = ct.RegionArray.open(tmp_path / "column")
    with pytest.raises(ct.RegionError, match="already exists"):
        column.save(tmp_path / "column")
    column[1:].save(tmp_path / "column", replace=True)
    assert ct.RegionArray.open(tmp_path / "column") == column[1:]
    assert old == column
    (tmp_path / "notes").mkdir()
    for call in (ct.RegionArray.open, partial(column.save, replace=True)):
        with pytest.raises(ct.RegionError, match="not a saved column"):
            call(tmp_path / "notes")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["column", "notes"]


POINTS = [(1.0, 2.0), (0.1, -7e99), (0.0, 3.0)]


def test_every_way_out_of_points_leads_back():
    column = ct.PointArray(POINTS, crs="EPSG:25832")
    for copy in (
        ct.PointArray.from_wkb(column.to_wkb()),
        ct.PointArray.from_shapely(column.to_shapely()),
        ct.PointArray.from_arrow(column.to_arrow()),
        ct.PointArray.from_arrow(column.to_wkb()),
        pickle.loads(pickle.dumps(column)),
    ):
        assert copy == column
    assert ct.PointArray.from_arrow(column.to_arrow()[1:]) == column[1:]
    assert column.xy.tolist() == [list(point) for point in POINTS]
    point, ways = column[1], ("wkt", "wkb", "geojson", "shapely")
    copies = [getattr(ct.Point, f"from_{way}")(getattr(point, f"to_{way}")()) for way in ways]
    for copy in [*copies, pickle.loads(pickle.dumps(point))]:
        assert copy == point
        assert hash(copy) == hash(point)
    assert shapely.geometry.shape(point) == point.to_shapely()


def test_separated_geoarrow_with_nulls():
    made = ct.read_points(pa.array([{"x": 1.0, "y": 2.0}, None, {"x": float("inf"), "y": 0.0}]))
    assert made.points.xy.tolist() == [[1.0, 2.0]]
    assert [bad.row for bad in made.rejected] == [1, 2]


def test_bad_rows_are_set_aside_with_reasons():
    rows = [b"\x01", None, *shapely.to_wkb([shapely.Point(1, 2), shapely.Point(), shapely.box(0, 0, 1, 1)])]
    rows.append(shapely.to_wkb(shapely.Point(1e200, 0)))
    made = ct.read_points(rows)
    assert made.rows.tolist() == [2]
    assert made.points[0] == ct.Point(1, 2)
    assert [(bad.row, bad.reason.split(";")[0]) for bad in made.rejected] == [
        (0, "malformed or truncated geometry"),
        (1, "no geometry (null)"),
        (3, "empty geometry"),
        (4, "wrong geometry type Polygon"),
        (5, "[1e+200, 0.0]: need finite coordinates within 1e-120..1e120 in magnitude"),
    ]
    with pytest.raises(ct.RegionError, match="row 0: malformed") as caught:
        ct.PointArray.from_wkb(rows)
    assert caught.value.row == 0


EDGES = [0.0, -0.0, 1.5, -2.5, 1e-120, -1e120, 1.1e120, 9e-121, -5e-324, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("values", [EDGES, EDGES[:6]])
def test_plain_points_are_read_as_shapely_reads_them(kind, values):
    """Every pair of coordinates; the array begins within its buffers."""
    xy = np.array([(x, y) for x in values for y in values])
    rows = pa.array([b"\x01", *shapely.to_wkb(shapely.points(xy))], kind)[1:]
    good = ((xy == 0) | ((np.abs(xy) >= 1e-120) & (np.abs(xy) <= 1e120))).all(axis=1)
    for given in (rows, pa.chunked_array([rows]), pa.chunked_array([rows[:5], rows[5:]])):
        made = ct.read_points(given)
        assert made.points.xy.tolist() == xy[good].tolist()
        assert not np.signbit(made.points.xy[made.points.xy == 0]).any()
        assert made.rows.tolist() == np.flatnonzero(good).tolist()
        assert [bad.row for bad in made.rejected] == np.flatnonzero(~good).tolist()


@pytest.mark.parametrize("other", [None, b"", b"\x01\x01\x00\x00\x00", "big-endian", "with Z", "with SRID", "a line"])
def test_one_row_that_is_no_plain_point_changes_no_other_row(other):
    shapes = {
        "big-endian": shapely.to_wkb(shapely.Point(7, 8), byte_order=0),
        "with Z": shapely.to_wkb(shapely.Point(7, 8, 9)),
        "with SRID": shapely.to_wkb(shapely.set_srid(shapely.Point(7, 8), 25832), include_srid=True),
        "a line": shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)])),
    }
    plain = shapely.to_wkb(shapely.Point(1, 2))
    made = ct.read_points(pa.array([plain, shapes.get(other, other), plain], pa.binary()), crs="EPSG:25832")
    is_point = other in ("big-endian", "with Z", "with SRID")
    assert made.points.xy.tolist() == [[1, 2], *([[7, 8]] if is_point else []), [1, 2]]
    assert [bad.row for bad in made.rejected] == ([] if is_point else [1])


@pytest.mark.parametrize("offsets", [[0, 900, 921, 63], [0, 42, 21, 63], [0, -42, -21, 63], [0, 2**31 - 1, 42, 63]])
def test_offsets_outside_of_a_column_of_points_are_damage(offsets):
    data = pa.py_buffer(b"".join(shapely.to_wkb(shapely.points(np.ones((3, 2))))))
    rows = pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(np.array(offsets, np.int32)), data])
    for read in (ct.read_points, ct.PointArray.from_wkb, ct.PointArray.from_arrow):
        with pytest.raises(ct.FormatError, match="is damaged"):
            read(rows)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ct.Point(float("nan"), 0), r"point 0 is \[nan, 0.0\]"),
        (lambda: ct.Point(1e-200, 0), "need finite coordinates within"),
        (lambda: ct.PointArray([(1, 2, 3)]), r"shape \(n, 2\), got \(1, 3\)"),
        (lambda: ct.Point.from_wkt("nonsense"), "malformed or truncated geometry"),
        (lambda: ct.Point.from_geojson({"type": "Polygon"}), "need a GeoJSON Point, got Polygon"),
        (lambda: ct.PointArray.from_arrow(pa.array([1.0])), "need GeoArrow points or WKB"),
    ],
)
def test_bad_points_are_region_errors(make, message):
    with pytest.raises(ct.RegionError, match=message):
        make()


def test_points_are_values():
    column = ct.PointArray(POINTS)
    assert column == ct.PointArray(np.array(POINTS))
    assert hash(column) == hash(ct.PointArray(POINTS))
    assert [point.x for point in column] == [1.0, 0.1, 0.0]
    assert column[[2, 0]][0] == ct.Point(0, 3)
    assert column[np.array([True, False, False])] == ct.PointArray(POINTS[:1])
    assert len(ct.PointArray([])) == 0
    assert repr(ct.Point(-0.0, 1)) == "Point(0.0, 1.0)"
    assert repr(column) == "<PointArray of 3 points>"
    for frozen in (column, column[0]):
        with pytest.raises(AttributeError, match="cannot be changed"):
            frozen.crs = None
