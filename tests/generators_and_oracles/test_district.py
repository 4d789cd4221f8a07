"""The district of the demonstration: repeatable, really adjacent, valid but for what is bad on purpose."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from contrada.demo.district import CRS, District, make_district, write_district
from contrada.geometry.arrow.mixed import parts_of

SCALE = 0.05


@pytest.fixture(scope="module")
def district() -> District:
    return make_district(seed=7, scale=SCALE)


def good(district: District, name: str, column: str = "geometry") -> ct.RegionArray:
    table = getattr(district, name)
    kept = np.setdiff1d(np.arange(len(table)), district.bad[name])
    return ct.RegionArray.from_wkb(table[column].combine_chunks().take(kept))


def relations(a: ct.RegionArray, b: ct.RegionArray) -> set[str]:
    """All relations but disjoint between regions of a and of b."""
    rows, others = shapely.STRtree(b.to_shapely()).query(a.to_shapely(), predicate="intersects")
    different = rows != others if a is b else np.full(len(rows), True)
    return {ct.Relation(code).name for code in np.unique(ct.relate(a[rows[different]], b[others[different]]))}


def test_a_seed_gives_the_same_rows_again_and_another_gives_others(district):
    again, other = make_district(seed=7, scale=SCALE), make_district(seed=8, scale=SCALE)
    for name in district.counts():
        assert getattr(district, name).equals(getattr(again, name)), name
        assert not getattr(district, name).equals(getattr(other, name)), name


@pytest.mark.parametrize("scale", [0.001, 0.05, 0.4])
def test_sizes_follow_the_scale(scale):
    counts = make_district(seed=3, scale=scale).counts()
    assert counts["parcels"] == pytest.approx(20_000 * scale, rel=0.06, abs=40)
    assert counts["buildings"] == pytest.approx(31_000 * scale, rel=0.06, abs=60)
    assert counts["facilities"] == max(3, 2_000 * scale)
    assert counts["messages"] == max(20, 5_000 * scale) + 195_000 * scale


@pytest.mark.parametrize("scale", [0, -1, float("nan"), 1e9])
def test_a_scale_that_makes_no_sense_is_refused(scale):
    with pytest.raises(ct.ContradaError, match="scale: need"):
        make_district(scale=scale)


def test_all_but_the_bad_rows_are_valid_and_the_bad_are_bad(district):
    for name in ("parcels", "buildings", "facilities", "messages"):
        table = getattr(district, name)
        _, rejected = parts_of(table["area" if name == "messages" else "geometry"].combine_chunks())
        assert sorted(bad.row for bad in rejected) == district.bad[name].tolist(), name
        reasons = " ".join(str(bad) for bad in rejected)
        assert "self-intersection" in reasons, name
        assert "not finite" in reasons, name
        assert any(table[table.num_columns - 1][row].as_py() is None for row in district.bad[name]), name


def test_parcels_share_edges_and_never_overlap(district):
    parcels = good(district, "parcels")
    assert relations(parcels, parcels) == {"MEETS"}
    polygons = parcels.to_shapely()
    assert (shapely.get_num_interior_rings(polygons) > 0).any(), "courtyards"
    assert (shapely.get_type_id(polygons) == 6).any(), "several parts"


def test_terraced_houses_share_walls_and_stand_on_parcels(district):
    buildings, parcels = good(district, "buildings"), good(district, "parcels")
    assert relations(buildings, buildings) == {"MEETS"}
    found = relations(buildings, parcels)
    assert {"INSIDE", "COVERED_BY", "MEETS"} <= found
    assert "OVERLAPS" not in found


def test_some_facilities_are_their_parcel(district):
    assert {"EQUALS", "OVERLAPS", "MEETS"} <= relations(good(district, "facilities"), good(district, "parcels"))


def test_closed_streets_run_along_parcels(district):
    table = district.messages
    closed = np.flatnonzero(np.array(table["event"].to_pylist()) == "closure")
    closed = np.setdiff1d(closed, district.bad["messages"])
    closures = ct.RegionArray.from_wkb(table["area"].combine_chunks().take(closed))
    assert "MEETS" in relations(closures, good(district, "parcels"))
    assert "OVERLAPS" not in relations(closures, good(district, "parcels"))


def test_storms_move_and_messages_come_in_their_order(district):
    table = district.messages
    onset = table["onset"].to_numpy()
    assert (np.diff(onset) >= np.timedelta64(0)).all()
    assert (table["expires"].to_numpy() > onset).all()
    names = np.array(table["id"].to_pylist())
    kept = np.setdiff1d(np.flatnonzero(names == "storm-00000"), district.bad["messages"])
    steps = shapely.from_wkb(table["area"].to_numpy()[kept])
    assert len(steps) > 5
    assert shapely.distance(shapely.centroid(steps[0]), shapely.centroid(steps[-1])) > 500
    assert shapely.area(steps).max() > 2 * shapely.area(steps[0])
    assert set(table["severity"].to_pylist()) == {1, 2, 3, 4, 5}


def test_subscriptions_parse_but_for_the_bad_and_find_messages(district):
    table, refused = ct.ForwardingTable(), []
    for row, wanted in enumerate(district.subscriptions.to_pylist()):
        try:
            table.subscribe(wanted["subscriber"], wanted["filter"], key=wanted["key"])
        except ct.LanguageError:
            refused.append(row)
    assert refused == district.bad["subscriptions"].tolist()
    answer = table.match_many(district.messages.drop_columns(["message_id"]), by="subscription")
    assert len(answer.rows) > len(district.messages)
    assert sum(" OR " in text for text in district.subscriptions["filter"].to_pylist()) > 5


def test_files_hold_the_tables(tmp_path):
    district = write_district(tmp_path / "new" / "place", seed=5, scale=0.01)
    folder = tmp_path / "new" / "place"
    for name, geometry in (("parcels", "geometry"), ("subscriptions", "geometry"), ("messages", "area")):
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.equals(getattr(district, name)), name
        described = json.loads(table.schema.metadata[b"geo"])
        assert described["primary_column"] == geometry
        column = described["columns"][geometry]
        assert f"{column['crs']['id']['authority']}:{column['crs']['id']['code']}" == CRS == "EPSG:25832"
    lines = [json.loads(line) for line in (folder / "buildings.geojsonl").read_text().splitlines()]
    collection = json.loads((folder / "facilities.geojson").read_text())["features"]
    assert [line["properties"]["id"] for line in lines] == district.buildings["id"].to_pylist()
    assert [feature["properties"]["key"] for feature in collection] == district.facilities["key"].to_pylist()


def test_walls_are_shared_in_longitude_and_latitude_too(tmp_path):
    district = write_district(tmp_path, seed=7, scale=0.01)
    lines = (tmp_path / "buildings.geojsonl").read_text().splitlines()
    shapes = [json.loads(line)["geometry"] for row, line in enumerate(lines) if row not in district.bad["buildings"]]
    regions = ct.RegionArray.from_geojson([json.dumps(shape) for shape in shapes])
    assert 11 < regions.bounds[:, 0].min() < 12
    assert relations(regions, regions) == {"MEETS"}
