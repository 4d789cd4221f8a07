"""CAP alerts: attributes, areas, circles, zones; and XML of people who mean harm."""

import io
import math
import re
from datetime import UTC, datetime

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

import contrada as ct
from console import collection, feature
from contrada.errors import FormatError
from contrada.formats.cap.areas import circles_of, polygons_of, united
from contrada.formats.reading import read_messages, read_zones
from contrada.formats.records import Read, Rejected
from effort import examples, within

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
  <identifier>KSTO1055887203</identifier><sender>KSTO@NWS.NOAA.GOV</sender><sent>2003-06-17T14:57:00-07:00</sent>
  <status>Actual</status><msgType>Alert</msgType><scope>Public</scope><references>a,b,2003-06-17T14:00:00-07:00</references>
"""
INFO = """<info><category>Met</category><category>Safety</category><event>SEVERE THUNDERSTORM</event>
  <urgency>Immediate</urgency><severity>Severe</severity><certainty>Observed</certainty>
  <onset>2003-06-17T15:00:00-07:00</onset><expires>2003-06-17T16:00:00-07:00</expires>
  <eventCode><valueName>SAME</valueName><value>SVR</value></eventCode>
  <parameter><valueName>hail</valueName><value>1 &lt; 2</value></parameter>
  <headline>NWS ISSUES WARNING &amp; MORE</headline>{}</info>"""
POLYGON = "<polygon>38.47,-120.14 38.34,-119.95 38.52,-119.74 38.62,-119.89 38.47,-120.14</polygon>"


def area(inner, name="COUNTY"):
    return f"<area><areaDesc>{name}</areaDesc>{inner}</area>"


def geocode(value, system="UGC"):
    return f"<geocode><valueName>{system}</valueName><value>{value}</value></geocode>"


def alert(*areas, infos=1):
    return (HEAD + INFO.format("".join(areas)) * infos + "</alert>").encode()


def vertices(region):
    return sorted(map(tuple, shapely.get_coordinates(region.to_shapely()).tolist()))


def read(data, **options):
    return list(read_messages(io.BytesIO(data), **options))


def only(data, **options):
    (found,) = read(data, **options)
    assert isinstance(found, Read), found
    return found.message


def test_attributes():
    message = only(alert(area(POLYGON + geocode("CAC003") + geocode("CAC109"))))
    region = message.pop("area")
    assert region == ct.Region([(-120.14, 38.47), (-119.95, 38.34), (-119.74, 38.52), (-119.89, 38.62)])
    assert region.crs == "OGC:CRS84"
    assert only(alert(area(POLYGON)), to_crs="EPSG:3857")["area"].crs == "EPSG:3857"
    assert message == {
        "identifier": "KSTO1055887203", "sender": "KSTO@NWS.NOAA.GOV",
        "sent": datetime(2003, 6, 17, 21, 57, tzinfo=UTC), "status": "Actual",
        "msgType": "Alert", "scope": "Public", "references": "a,b,2003-06-17T14:00:00-07:00",
        "category": "Met", "event": "SEVERE THUNDERSTORM", "urgency": "Immediate", "severity": "Severe",
        "certainty": "Observed", "onset": datetime(2003, 6, 17, 22, tzinfo=UTC), "language": "en-US",
        "expires": datetime(2003, 6, 17, 23, tzinfo=UTC), "headline": "NWS ISSUES WARNING & MORE",
        "eventCode.SAME": "SVR", "parameter.hail": "1 < 2", "areaDesc": "COUNTY", "geocode.UGC": "CAC003; CAC109",
        "alert": "KSTO@NWS.NOAA.GOV,KSTO1055887203,2003-06-17T14:57:00-07:00",
        "thread": "KSTO@NWS.NOAA.GOV,KSTO1055887203,2003-06-17T14:57:00-07:00",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["Update", "Cancel"])
def test_an_update_belongs_to_the_thread_of_its_earliest_reference(kind):
    """References may come in any order, with any offset from UTC; those without a time come last."""
    references = "a,3,2003-06-17T12:00:00-00:00 a,1,2003-06-17T12:30:00+02:00 broken a,2,2003-06-17T11:00:00-00:00"
    data = alert(area(POLYGON), infos=2).decode().replace("<msgType>Alert<", f"<msgType>{kind}<")
    data = re.sub("<references>.*?</references>", f"<references>{references}</references>", data)
    first = "a,1,2003-06-17T12:30:00+02:00"
    assert [found.message["thread"] for found in read(data.encode())] == [first, first + "#2"]
    assert only_thread(data.replace(references, "broken")) == "broken"
    assert only_thread(re.sub("<references>.*?</references>", "", data)).startswith("KSTO@NWS.NOAA.GOV,")


def only_thread(data):
    return read(data.encode())[0].message["thread"]


def test_each_block_is_a_message_and_so_is_an_alert_without_any():
    assert len(read(alert(area(POLYGON), infos=3))) == 3
    assert only((HEAD + "</alert>").encode())["status"] == "Actual"


def test_version_1_1_and_prefixes():
    data = alert(area(POLYGON)).replace(b"cap:1.2", b"cap:1.1")
    assert only(data)["event"] == "SEVERE THUNDERSTORM"
    prefixed = re.sub(rb"<(/?)(?=\w)", rb"<\1c:", data).replace(b"xmlns=", b"xmlns:c=")
    assert only(prefixed)["area"].bounds == only(data)["area"].bounds


def test_utf_16_and_latin_1():
    text = alert(area(POLYGON, name="Città")).decode()
    assert only(text.replace("UTF-8", "ISO-8859-1").encode("latin-1"))["areaDesc"] == "Città"
    assert only(text.replace("UTF-8", "UTF-16").encode("utf-16"))["areaDesc"] == "Città"


# Areas


def test_parts_that_lie_apart_keep_their_coordinates():
    one, other = "<polygon>0,0 0,1 1.1,1 0,0</polygon>", "<polygon>0.1,5 0,6 1,6 0.1,5</polygon>"
    region = only(alert(area(one), area(other, "B")))["area"]
    assert region == united(polygons_of(["0,0 0,1 1.1,1 0,0", "0.1,5 0,6 1,6 0.1,5"]))
    assert vertices(region) == [(0, 0), (0, 0), (1, 0), (1, 1.1), (5, 0.1), (5, 0.1), (6, 0), (6, 1)]


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 4)), min_size=1, max_size=8))
def test_a_union_is_the_union(squares):
    boxes = [ct.Region.box(x + 0.1, y + 0.3, x + size + 0.1, y + size + 0.3) for x, y, size in squares]
    whole = united(boxes)
    expected = shapely.unary_union([box.to_shapely() for box in boxes])
    assert shapely.area(shapely.symmetric_difference(whole.to_shapely(), expected)) < 1e-9
    for k, box in enumerate(boxes):
        if all(ct.relate(box, other).name == "DISJOINT" for j, other in enumerate(boxes) if j != k):
            assert set(vertices(box)) <= set(vertices(whole))


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ("<polygon>0,0 0,1 1,1</polygon>", "at least four points, got 3"),
        ("<polygon>0,0 0,1 1,1 1,0</polygon>", "not closed"),
        ("<polygon>0,0 1,1 0,1 1,0 0,0</polygon>", "self-intersection"),
        ("<polygon>0,0 0,1 1,nan 0,0</polygon>", "need a pair lat,lon, got '1,nan'"),
        ("<polygon>0,0 0,1 1 0,0</polygon>", "need a pair lat,lon, got '1'"),
        ("<polygon>0,0 0,1 1,1,7 0,0</polygon>", "need a pair lat,lon"),
        ("<polygon>0,0 0,1 1e9,1 0,0</polygon>", "need a pair lat,lon"),
        ("<polygon>100,0 0,1 1,1 100,0</polygon>", "outside longitude"),
        ("<polygon></polygon>", "at least four points, got 0"),
        ("<circle>0,0</circle>", "need a circle such as"),
        ("<circle>0,0 x</circle>", "need a number of kilometres"),
        ("<circle>0,0 0</circle>", "need a positive number of kilometres"),
        ("<circle>0,0 -3</circle>", "need a positive number of kilometres"),
        ("<circle>0,0 inf</circle>", "need a positive number of kilometres"),
        ("<circle>0,0 9000</circle>", "too large"),
        ("<circle>89.9,0 50</circle>", "pole"),
        ("<circle>0,200 5</circle>", "outside latitude"),
        ("", "need a polygon, circle or geocode"),
        (geocode("CAZ041"), "unknown zones: UGC=CAZ041"),
    ],
)
def test_a_bad_area_is_named_and_the_rest_goes_on(inner, reason):
    lost, found = read(alert(area(inner, "BAD ONE"), area(POLYGON)))
    assert isinstance(lost, Rejected)
    assert lost.is_part
    assert "area 'BAD ONE'" in lost.reason
    assert reason in lost.reason
    assert lost.raw
    assert found.message["area"] == polygons_of([POLYGON[9:-10]])[0]


def test_without_any_good_area_the_message_has_none():
    lost, found = read(alert(area(geocode("CAZ041"))))
    assert lost.is_part
    assert "area" not in found.message
    assert found.message["geocode.UGC"] == "CAZ041"


def test_zones(tmp_path):
    zones = {("UGC", "A"): ct.Region.box(0, 0, 1, 1), ("UGC", "B"): ct.Region.box(4, 0, 5, 1)}
    both = geocode("A") + geocode("B") + geocode("012", "SAME")
    assert only(alert(area(both)), zones=zones)["area"].area == 2
    lost, found = read(alert(area(both + geocode("C"))), zones=zones)
    assert "UGC=C" in lost.reason
    assert "SAME" not in lost.reason
    assert found.message["area"].area == 2
    assert only(alert(area(POLYGON + geocode("A"))), zones=zones)["area"].bounds[0] == -120.14  # a polygon says more
    path = tmp_path / "zones.geojson"
    rows = [feature(zone.to_geojson(), valueName=system, value=name) for (system, name), zone in zones.items()]
    path.write_text(collection(rows))
    assert read_zones(path) == zones
    assert only(alert(area(both)), zones=path)["area"].area == 2


@pytest.mark.parametrize(
    "text",
    [
        "x",
        '{"valueName": "UGC", "value": "A"}',
        '{"valueName": "U", "value": "A", "geometry": {"type": "Point", "coordinates": [0, 0]}}',
    ],
)
def test_bad_zones_are_an_error_that_names_the_line(text):
    with pytest.raises(FormatError, match="line 1"):
        read_zones(io.BytesIO(text.encode()))


@settings(max_examples=examples(60))
@given(st.floats(-79, 79), st.floats(-180, 180), st.floats(0.001, 600))
def test_a_circle_lies_in_its_polygon(latitude, longitude, radius):
    try:
        (region,) = circles_of([f"{latitude:.6f},{longitude:.6f} {radius:.6f}"])
    except FormatError:
        assert abs(latitude) + math.degrees(radius / 6335) > 84
        return
    shape = region.to_shapely()
    bearings = np.linspace(0, 360, 721)
    centre = np.full((2, 721), [[round(longitude, 6)], [round(latitude, 6)]])
    for geod in (Geod(ellps="WGS84"), Geod(a=6371008.8, b=6371008.8)):
        x, y, _ = geod.fwd(*centre, bearings, np.full(721, round(radius, 6) * 1000))
        assert shapely.covers(shape.buffer(1e-9), shapely.points(x, y)).all()
    true_area = math.pi * (radius / 111.2) ** 2 / math.cos(math.radians(latitude))
    assert region.area < 1.2 * true_area + 1e-12 or radius > 300


def test_a_circle_at_the_antimeridian_comes_in_two_parts():
    (region,) = circles_of(["10,179.9 50"])
    assert len(region.parts) == 2
    assert region.bounds[0] == -180
    assert region.bounds[2] == 180


def test_circles_in_alerts_are_united_with_polygons():
    message = only(alert(area("<circle>0,0 100</circle><polygon>0,0 0,3 1,3 0,0</polygon>")))
    assert len(message["area"].parts) == 1
    assert message["area"].bounds[2] == 3


def circles(texts):
    return alert(area("".join(f"<circle>{text}</circle>" for text in texts)))


def test_many_circles_are_read_like_single_ones():
    texts = [f"{k / 7:.3f},{170 + k / 2:.3f} 10" for k in range(20)]
    assert only(circles(texts))["area"] == united([circles_of([text])[0] for text in texts])


def test_a_bad_circle_among_many_is_named():
    texts = [f"0,{k} 10" for k in range(20)] + ["0,0 1e-300", "0,0 -1"]
    lost, found = read(circles(texts))
    assert isinstance(lost, Rejected)
    assert "area 'COUNTY': " in lost.reason
    assert "area" not in found.message


def test_circles_in_an_alert_are_limited():
    (rejected,) = read(circles(f"0,{k / 100} 1" for k in range(10_001)))
    assert "10,001 different circles" in rejected.reason
    assert "CONTRADA_MAX_CIRCLES" in rejected.reason
    assert only(circles(["0,0 1"] * 10_001))["area"] == circles_of(["0,0 1"])[0]


def test_alerts_in_a_file_are_limited(limited):
    limited(alerts=3)
    *good, rest = read(alert() * 5)
    assert [item.number for item in good] == [0, 1, 2]
    assert "CONTRADA_MAX_ALERTS" in rest.reason
    assert rest.raw.encode() == alert() * 2, "nothing is lost by it"


# Bad and hostile XML

BOMB = b"""<?xml version="1.0"?><!DOCTYPE alert [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><alert>&c;</alert>"""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (BOMB, "document type"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><alert/>', "document type"),
        (b"<a>" * 5000, "levels of nesting"),
        (b"<alert><a></alert>", "mismatched"),
        (b"<alert", "XML"),
        (b"<alert/>", "need an alert of CAP"),
        (b'<feed xmlns="http://www.w3.org/2005/Atom"/>', "Atom feed"),
        (b'<alert xmlns="http://www.incident.com/cap/1.0"/>', "incident.com"),
        (b'<?xml version="1.0" encoding="x-nobody"?><alert/>', "XML"),
        (b"<alert>\xff</alert>", "XML"),
        (alert().replace(b"<status>Actual</status>", b""), "needs status"),
        (alert().replace(b"<severity>Severe</severity>", b"<severity/>"), "needs severity"),
        (alert().replace(b"2003-06-17T15:00:00-07:00", b"soon"), "'soon' is not a timestamp"),
    ],
)
def test_bad_alerts_are_rejected(data, reason):
    with within(2):
        (found,) = read(data, format="cap")
    assert isinstance(found, Rejected)
    assert reason in found.reason
    assert not found.is_part


def test_alerts_one_after_another_and_bad_ones_between():
    good = alert(area(POLYGON))
    plain = good.partition(b"\n")[2]  # without the declaration
    found = read(good + b"\n" + b"<alert><broken>" + plain + BOMB + good + b"junk" + plain)
    assert [type(item) for item in found] == [Read, Rejected, Read, Rejected, Read, Rejected, Read]
    assert [item.number for item in found] == list(range(7))
    assert found[1].raw == "<alert><broken>"


def test_many_alerts_take_linear_time():
    short = alert(area(POLYGON)).replace(b"  ", b"")
    with within(5):
        assert len(read(short * 3000)) == 3000


def test_a_directory(tmp_path):
    (tmp_path / "b.xml").write_bytes(alert(area(POLYGON)))
    (tmp_path / "a.xml").write_bytes(b"<alert")
    (tmp_path / "notes.txt").write_text("no alert")
    (tmp_path / ".hidden.xml").write_text("no alert")
    found = list(read_messages(tmp_path))
    assert [type(item) for item in found] == [Rejected, Read]
    assert found[0].source.endswith("a.xml")


@pytest.mark.parametrize("piece", [b"<alert>", b"<?xml ", b"<alert><!--", b"<a/>x", b"<a b='", b"<![CDATA[<alert>"])
def test_broken_documents_take_linear_time(piece):
    with within(10):
        assert all(isinstance(item, Rejected) for item in read(piece * (60_000 // len(piece)), format="cap"))
