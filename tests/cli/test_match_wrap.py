"""`contrada match --wrap`: files of every format, with filters and templates, by a table and by a scan, and tracked."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from console import contrada, read_lines, write_lines

EAST, WEST, FAR = shapely.box(-175.5, 1, -174, 2), shapely.box(185.5, 1, 186, 2), shapely.box(0.5, 1, 1, 2)
CAP = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>{0}</identifier><sender>s</sender>
<sent>2024-05-01T00:00:00+00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope><info>
<category>Met</category><event>e</event><urgency>Past</urgency><severity>Minor</severity><certainty>Likely</certainty>
<area><areaDesc>a</areaDesc><polygon>{1}</polygon></area></info></alert>"""


@pytest.fixture
def files(tmp_path):
    write_lines(tmp_path / "s.ndjson", [{"key": "w", "filter": "S_INTERSECTS(area, BBOX(170, 0, 190, 9))"}])
    write_lines(tmp_path / "g.ndjson", [{"key": "w", "filter": "S_INTERSECTS(geometry, BBOX(-190, 0, -170, 9))"}])
    around = shapely.geometry.mapping(shapely.box(170, 0, 190, 9))
    feature = {"type": "Feature", "id": "w", "properties": {}, "geometry": around}
    (tmp_path / "s.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    kind = {"columns": {"geometry": {"encoding": "WKB"}}, "primary_column": "geometry", "version": "1.1.0"}
    rows = pa.table(
        {"id": ["w", "far"], "geometry": [shapely.to_wkb(shapely.box(170, 0, 190, 9)), shapely.to_wkb(FAR)]}
    )
    pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(kind)}), tmp_path / "s.parquet")
    return tmp_path


def messages(path, format, name):
    shapes = {"east": EAST, "west": WEST, "far": FAR}
    if format == "ndjson":
        write_lines(path, [{"id": id, name: shapely.geometry.mapping(shape)} for id, shape in shapes.items()])
    elif format == "geojson":
        features = [
            {"type": "Feature", "id": id, "properties": {}, "geometry": shapely.geometry.mapping(shape)}
            for id, shape in shapes.items()
        ]
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    elif format == "csv":
        path.write_text("id,geometry\n" + "".join(f'{id},"{shape.wkt}"\n' for id, shape in shapes.items()))
    elif format == "xml":
        rings = {id: " ".join(f"{y},{x}" for x, y in shape.exterior.coords) for id, shape in shapes.items()}
        path.write_text("".join(CAP.format(*pair).replace("\n", "") for pair in rings.items()))
    else:
        values = [shapely.to_wkb(shapely.set_srid(shape, 4326), include_srid=True) for shape in shapes.values()]
        pq.write_table(pa.table({"id": list(shapes), name: values}), path)


@pytest.mark.parametrize(
    ("format", "name"),
    [("ndjson", "area"), ("geojson", "geometry"), ("csv", "geometry"), ("parquet", "area"), ("xml", "area")],
)
def test_messages_of_every_format_are_wrapped(files, format, name):
    path = files / f"m.{format}"
    messages(path, format, name)
    subscriptions = files / ("s.ndjson" if name == "area" else "g.ndjson")
    wrap = ["--wrap", f"{name}=longitude", "--id", "identifier" if format == "xml" else "id"]
    found = contrada("match", path, subscriptions, *wrap, code=0)
    assert [row["message"] for row in read_lines(found.stdout)] == ["east", "west"]
    template = ["--template", f"S_INTERSECTS({name}, $geometry)", "--key", "id"]
    for rows, plan in (("s.geojson", "table"), ("s.parquet", "table"), ("s.parquet", "scan")):
        found = contrada("match", path, files / rows, *wrap, *template, "--plan", plan, code=0)
        pairs = [(row["message"], row["key"]) for row in read_lines(found.stdout)]
        assert pairs == [("east", "w"), ("west", "w"), *([("far", "far")] if rows == "s.parquet" else [])]


def test_explain_and_errors(files):
    messages(files / "m.ndjson", "ndjson", "area")
    run = ["match", files / "m.ndjson", files / "s.ndjson"]
    shown = contrada(*run, "--wrap", "area=longitude", "--explain", "w").stdout
    assert "written: S_INTERSECTS(area, BBOX(170, 0, 190, 9))" in shown
    assert shown.count("matches.") == 2
    for wrap in ("area=latitude", "area"):
        result = contrada(*run, "--wrap", wrap, code=2)
        assert "--wrap: " in result.stderr


def test_tracked_objects_go_on_beyond_the_date_line(files):
    places = [(id, {"type": "Point", "coordinates": [x, 1]}) for id, x in enumerate([160, 175, -175, 185.5, -160])]
    write_lines(files / "m.ndjson", [{"id": id, "bus": 7, "area": place} for id, place in places])
    run = ["match", files / "m.ndjson", files / "s.ndjson", "--wrap", "area=longitude", "--track", "bus"]
    found = read_lines(contrada(*run, "--on", "enter,exit", code=0).stdout)
    assert [(row["event"], row["message"]) for row in found] == [("enter", 1), ("exit", 4)]
    assert "which is wrapped at the date line" in contrada(*run, "--on", "cross", code=2).stderr
    tracker = ct.Tracker(ct.ForwardingTable(wrap={"area": "longitude"}), track="bus")
    rows = pa.table({"key": ["w"], "g": [shapely.to_wkb(shapely.box(170, 0, 190, 9))]})
    tracker.subscribe_many(rows, "S_INTERSECTS(area, $g)", on="enter,exit")
    column = pa.table({"bus": [7] * 5, "area": [shapely.to_wkb(shapely.Point(p["coordinates"])) for _, p in places]})
    assert [event.kind for event in tracker.publish(column)] == ["enter", "exit"]
