"""Coordinate reference systems through every door and exit of regions and points: none is lost, none is guessed."""

import json
import pickle
import subprocess
import sys
from functools import partial
from itertools import product

import geopandas
import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely

import contrada as ct
from contrada.geometry.arrow.geoarrow import with_crs
from contrada.geometry.crs import Crs, is_same_crs
from contrada.geometry.wellknown import wkb_srids
from contrada.limits import limit

UTM = "EPSG:25832"
CUSTOM = pyproj.CRS("+proj=tmerc +lon_0=11.25 +ellps=GRS80 +units=m")
DIFFER = "subscriptions and message: coordinate reference systems differ: EPSG:25832 and EPSG:4326"
SQUARE, SPOT = shapely.box(0, 0, 4, 4), shapely.Point(1, 2)

# Values that mean one system, and those that mean none


@pytest.mark.parametrize(
    "value",
    [
        UTM, "epsg:25832", " EPSG:25832\n", 25832, np.int32(25832), "25832", pyproj.CRS(25832), Crs(UTM),
        pyproj.CRS(25832).to_wkt(), pyproj.CRS(25832).to_wkt("WKT1_ESRI"), pyproj.CRS(25832).to_json(),
        pyproj.CRS(25832).to_json_dict(), "urn:ogc:def:crs:EPSG::25832", "http://www.opengis.net/def/crs/EPSG/0/25832",
        geopandas.GeoSeries([SQUARE], crs=25832).crs, {"id": {"authority": "EPSG", "code": 25832}},
    ],
)  # fmt: skip
def test_spellings_of_one_system(value):
    assert type(Crs.of(value)) is Crs
    assert Crs.of(value) == UTM
    assert ct.Region.box(0, 0, 1, 1, crs=value).crs == UTM


@pytest.mark.parametrize(
    "value",
    [
        "bananas", "", "none", "EPSG:", "EPSG:0", "EPSG:nonsense", "EPSG:99999999", "FOO:1", "EPSG:4326\0x", "\ud800",
        True, False, 3.5, float("nan"), 0, -1, 10**30, -(10**30), [], {}, {"type": "bananas"}, b"EPSG:4326", object(),
        "A[" * 30, "PROJCS[", "{", "[]", '{"a": 1}', "+proj=bananas", "EPSG:32633+unknown", "EPSG:5703", "EPSG:4978",
        pyproj.CRS("EPSG:5703"), "EPSG:25832;DROP", "../../etc/passwd", {1: object()}, "(" * 10**5, '{"a":' * 10**5,
    ],
)  # fmt: skip
def test_what_is_no_system_is_refused_at_every_door(value):
    sifting = partial(ct.read_regions, [SQUARE.wkb]), partial(ct.read_points, [SPOT.wkb])
    for door in (lambda crs: Crs.of(crs), *DOORS.values(), *sifting):
        with pytest.raises(ct.CrsError, match="unknown coordinate reference system"):
            door(crs=value)


def test_limits_hold_before_proj_sees_anything():
    with pytest.raises(ct.LimitError, match="CONTRADA_MAX_CRS_BYTES"):
        Crs.of("[" + " " * limit("crs_bytes"))
    deep = {}
    for _ in range(10**5):
        deep = {"id": deep}
    with pytest.raises(ct.CrsError):
        Crs.of(deep)


def test_what_codes_a_system_has():
    assert Crs.of(CUSTOM).epsg is None
    assert Crs.of(CUSTOM).startswith("{")
    assert "PROJJSON" in Crs.of(CUSTOM).label
    assert Crs.of("OGC:CRS84").epsg == Crs.of(4326).epsg == 4326
    assert is_same_crs(Crs.of(CUSTOM), Crs.of(CUSTOM.to_wkt()))
    lie = pyproj.CRS(25832).to_json_dict()
    lie["conversion"]["parameters"][1]["value"] = 10.5
    assert Crs.of(lie) != UTM, "an id that its own definition contradicts is no name"


def test_common_codes_do_not_load_proj():
    code = (
        "import sys, contrada as ct; r = ct.Region.box(0, 0, 1, 1, crs='EPSG:25832'); "
        "ct.relate(r, ct.Region.box(0, 0, 1, 1, crs=25832)); ct.Point(1, 2, crs=4326); "
        "sys.exit('pyproj' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Doors


def tagged(shape, srid=25832):
    return shapely.set_srid(shape, srid)


def ewkb(shape, srid=25832):
    return shapely.to_wkb(tagged(shape, srid), include_srid=True)


def series(shape, crs=25832):
    return geopandas.GeoSeries([shape], crs=crs)


def member(shape, name=UTM):
    crs = {"type": "name", "properties": {"name": name}}
    return {**shapely.geometry.mapping(shape), "crs": crs}


def geoarrow(crs):
    return with_crs(pa.chunked_array([[shapely.to_wkb(SQUARE)]]), crs)


def forms(shape, is_named):
    """A geometry in every format of single values, with the name of its system or without."""
    if is_named:
        text = f"SRID=25832;{shape.wkt}"
        return {"wkt": text, "wkb": ewkb(shape), "geojson": member(shape), "shapely": tagged(shape)}
    return {"wkt": shape.wkt, "wkb": shape.wkb, "geojson": shapely.geometry.mapping(shape), "shapely": shape}


def readers(is_named):
    """Readers of single values, and of columns of one value, by name."""
    for kinds, shape in (((ct.Region, ct.RegionArray), SQUARE), ((ct.Point, ct.PointArray), SPOT)):
        for kind, (form, value) in product(kinds, forms(shape, is_named).items()):
            if read := getattr(kind, f"from_{form}", None):
                yield f"{kind.__name__}.from_{form}", partial(read, value if kind is kinds[0] else [value])


DOORS = {
    **dict(readers(is_named=False)),
    "shell": partial(ct.Region, [(0, 0), (4, 0), (4, 4), (0, 4)]),
    "box": partial(ct.Region.box, 0, 0, 4, 4),
    "column arrow wkb": partial(ct.RegionArray.from_wkb, pa.array([SQUARE.wkb])),
    "column geojson text": partial(ct.RegionArray.from_geojson, [json.dumps(shapely.geometry.mapping(SQUARE))]),
    "column arrow": partial(ct.RegionArray.from_arrow, pa.array([SQUARE.wkb])),
    "point": partial(ct.Point, 1, 2),
    "points": partial(ct.PointArray, [(1, 2)]),
    "points arrow": partial(ct.PointArray.from_arrow, pa.array([SPOT.wkb])),
}
BIG_ENDIAN = shapely.to_wkb(tagged(SQUARE), include_srid=True, byte_order=0)
# Doors where the data name EPSG:25832 themselves, whatever else is given.
NAMING_DOORS = {
    **dict(readers(is_named=True)),
    "column ewkb big-endian": partial(ct.RegionArray.from_wkb, [BIG_ENDIAN]),
    "column geojson text": partial(ct.RegionArray.from_geojson, [json.dumps(member(SQUARE))]),
    "geoseries": partial(ct.RegionArray.from_shapely, series(SQUARE)),
    "geometry array": partial(ct.RegionArray.from_shapely, series(SQUARE).values),
    "geopandas arrow": partial(ct.RegionArray.from_arrow, series(SQUARE).to_arrow()),
    "geopandas geoarrow": partial(ct.RegionArray.from_arrow, series(SQUARE).to_arrow(geometry_encoding="geoarrow")),
    "typed": partial(ct.RegionArray.from_arrow, geoarrow(UTM)),
    "typed projjson": partial(ct.RegionArray.from_arrow, geoarrow(pyproj.CRS(25832).to_json())),
    "points arrow ewkb": partial(ct.PointArray.from_arrow, pa.array([ewkb(SPOT)])),
    "points geoseries": partial(ct.PointArray.from_shapely, series(SPOT)),
    "points geopandas arrow": partial(ct.PointArray.from_arrow, series(SPOT).to_arrow()),
}


@pytest.mark.parametrize("door", NAMING_DOORS)
def test_a_system_that_data_name_arrives_and_another_is_an_error(door):
    assert NAMING_DOORS[door]().crs == UTM
    assert NAMING_DOORS[door](crs=25832).crs == UTM
    with pytest.raises(ct.CrsError, match=r"EPSG:25832 and EPSG:4326"):
        NAMING_DOORS[door](crs="EPSG:4326")


# Exits


def column_of(made):
    if isinstance(made, ct.Point):
        return ct.PointArray([(made.x, made.y)], crs=made.crs)
    return ct.RegionArray.from_regions([made]) if isinstance(made, ct.Region) else made


@pytest.mark.parametrize("crs", [25832, pyproj.CRS(4326), CUSTOM, None])
@pytest.mark.parametrize("door", DOORS)
def test_what_comes_in_goes_out(door, crs, tmp_path):
    made, known = DOORS[door](crs=crs), Crs.of(crs)
    column = column_of(made)
    kind = type(column)
    copies = [made, column, column[0], column[:1], column[[0]]]
    copies += [pickle.loads(pickle.dumps(made)), kind.from_arrow(column.to_arrow())]
    if kind is ct.RegionArray:
        column.save(tmp_path / "saved")
        copies += [ct.RegionArray.open(tmp_path / "saved"), ct.RegionArray.from_regions([column[0]])]
    assert [copy.crs for copy in copies] == [known] * len(copies)
    assert all(copy.crs is None or type(copy.crs) is Crs for copy in copies)
    srid = 0 if known is None else known.epsg or 0
    assert shapely.get_srid(column.to_shapely()).tolist() == [srid]
    assert shapely.get_srid(column[0].to_shapely()) == srid
    if srid:
        assert wkb_srids(column.to_wkb(srid=True)).tolist() == [srid]
        assert shapely.get_srid(shapely.from_wkb(column[0].to_wkb(srid=True))) == srid
        assert kind.from_wkb(column.to_wkb(srid=True)) == column
        assert column.to_wkb(srid=True)[0].as_py() == column[0].to_wkb(srid=True)
        assert shapely.from_wkb(column[0].to_wkb(srid=True)).equals(column[0].to_shapely())
    else:
        for one in (column, column[0]):
            with pytest.raises(ct.CrsError, match="EWKB"):
                one.to_wkb(srid=True)
    assert wkb_srids(column.to_wkb()).tolist() == [0]


def test_ewkb_of_large_columns_and_slices_reads_back():
    shapes = [shapely.box(k, 0, k + 1, 1) for k in range(50)]
    shapes[7] = shapely.MultiPolygon([shapes[7], shapely.box(100, 100, 101, 101)])
    shapes[9] = shapes[9].buffer(0.4).difference(shapely.Point(9.5, 0.5).buffer(0.1))
    column = ct.RegionArray.from_shapely(shapes, crs=25832)
    for part in (column, column[5:12]):
        again = ct.RegionArray.from_wkb(part.to_wkb(srid=True))
        assert (again, again.crs) == (part, UTM)
        theirs = shapely.from_wkb(part.to_wkb(srid=True).to_pylist())
        assert shapely.to_wkb(theirs).tolist() == part.to_wkb().to_pylist()
    assert ct.RegionArray.from_wkb(column[3:3].to_wkb(srid=True)).crs is None


# Meeting


@pytest.mark.parametrize("door", DOORS)
def test_values_of_two_systems_do_not_meet(door):
    here, there = (column_of(DOORS[door](crs=crs))[0] for crs in (4326, 25832))
    region = ct.Region.box(0, 0, 9, 9, crs=25832)
    names = "EPSG:(4326 and EPSG:25832|25832 and EPSG:4326)"
    ct.relate(there, region)
    table = ct.ForwardingTable()
    table.subscribe("x", ct.Constraint("area", ct.RelationSet.S_INTERSECTS, region), key="k")
    for meet in (
        lambda: ct.relate(here, region),
        lambda: table.match({"area": here}),
        lambda: table.match_keys({"area": here}),
        lambda: table.explain({"area": here}, "k"),
        lambda: table.subscribe("y", ct.Constraint("area", ct.RelationSet.S_INTERSECTS, here)),
    ):
        with pytest.raises(ct.CrsError, match=names):
            meet()
    assert table.match({"area": there}) == {"x"}
    found = table.match_many([{"area": here}, {"area": there}], by="subscription")
    assert np.diff(found.offsets).tolist() == [0, 1]
    assert "EPSG:25832 and EPSG:4326" in found.rejected[0].reason


@pytest.mark.parametrize("has_scalars", [False, True])
def test_a_table_of_mixed_srids_rejects_row_by_row(has_scalars, tmp_path):
    table = ct.ForwardingTable()
    asked = "S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))"
    constraint = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(0, 0, 4, 4, crs=25832))
    table.subscribe("x", ct.Filter([constraint, *([ct.Constraint("size", ">", 1)] if has_scalars else [])]), key="k")
    table.subscribe("y", asked, key="l")  # text names no system, and fits
    shapes = [SQUARE, SPOT, SQUARE, SPOT, SQUARE, None, SQUARE]
    srids = [4326, 4326, 25832, 25832, 0, 0, 4294967295 - 2**32]
    values = [None if shape is None else ewkb(shape, srid) for shape, srid in zip(shapes, srids, strict=True)]
    messages = pa.table({"area": pa.array(values, pa.binary()), "size": [5] * 7})
    table.save(tmp_path / "saved")
    for one in (table, ct.ForwardingTable.open(tmp_path / "saved")):
        found = one.match_many(messages, by="subscription")
        assert np.diff(found.offsets).tolist() == [0, 0, 2, 2, 2, 0, 0]
        reasons = {bad.row: bad.reason for bad in found.rejected}
        assert set(reasons) == {0, 1, 6}
        assert all(DIFFER in reasons[row] for row in (0, 1))
        assert "SRID 4294967295 is not a known coordinate reference system" in reasons[6]
        typed = messages.set_column(0, "area", with_crs(pa.chunked_array([messages["area"].combine_chunks()]), 4326))
        assert {bad.row for bad in one.match_many(typed, by="subscription").rejected} == {0, 1, 2, 3, 4, 6}


def test_rows_in_another_system_are_set_aside_alone():
    for shape, read, name in ((SQUARE, ct.read_regions, "regions"), (SPOT, ct.read_points, "points")):
        sifted = read([ewkb(shape, srid) for srid in (25832, 4326, 25832, -7)] + [b"rubbish", shape.wkb])
        assert (sifted.rows.tolist(), getattr(sifted, name).crs) == ([0, 2, 5], UTM)
        assert [bad.row for bad in sifted.rejected] == [1, 3, 4]
    texts = [f"SRID={srid};{SQUARE.wkt}" for srid in ("25832", "9" * 40, "-5", "x", "4326")]
    assert [bad.row for bad in ct.read_regions(texts).rejected] == [1, 2, 3, 4]
    features = [member(SQUARE, name) for name in (UTM, "bananas", "EPSG:4326")] + [{**member(SQUARE), "crs": 7}]
    assert [bad.row for bad in ct.read_regions(features).rejected] == [1, 2, 3]


@pytest.mark.parametrize("metadata", ["[1]", "{", '{"crs": "bananas"}', '{"crs": 3.5}', '{"crs": ' + "[" * 10**5])
def test_bad_metadata_of_arrow_is_an_error(metadata):
    class Foreign:
        def __arrow_c_array__(self, schema=None):
            about = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": metadata}
            field = pa.field("g", pa.binary(), metadata=about)
            return field.__arrow_c_schema__(), pa.array([SQUARE.wkb]).__arrow_c_array__()[1]

    with pytest.raises(ct.ContradaError):
        ct.RegionArray.from_arrow(Foreign())
