"""Content negotiation, ids, one-line JSON, alerts, CloudEvents in binary mode, and bodies that are hard to read."""

import base64
import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada.broker import Broker
from contrada.errors import FormatError
from contrada.service.intake import BodyReader, MediaTypeError, Post, plain, post_of
from effort import within

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
FEATURE = {"type": "Feature", "properties": {"n": 1}, "geometry": SQUARE}
EVENT = {"specversion": "1.0", "id": "7", "source": "/buoy", "type": "wave"}
HEADERS = {f"ce-{name}": value for name, value in EVENT.items()}
INFO = """<info><category>Met</category><event>Storm</event><urgency>Immediate</urgency><severity>Severe</severity>
<certainty>Likely</certainty><area><areaDesc>A field</areaDesc>{}</area></info>"""
POLYGON = "<polygon>0,0 0,1 1,1 0,0</polygon>"


def encoded(value):
    return json.dumps(value).encode()


def alert(*infos, identifier="a7"):
    return f"""<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>{identifier}</identifier>
    <sender>s@x</sender><sent>2024-05-01T12:00:00-00:00</sent><status>Actual</status><msgType>Alert</msgType>
    <scope>Public</scope>{"".join(infos)}</alert>""".encode()


def read(*posts, **options):
    return BodyReader(**options).read(posts)


def one(*posts, **options):
    """The only message: its attributes, and what was taken."""
    taken = read(*posts, **options)
    assert len(taken.bodies) == len(taken.parts) == 1, taken
    return taken.parts[0].table.to_pylist()[0], taken


def reasons(*posts, **options):
    taken = read(*posts, **options)
    assert not taken.bodies
    assert not taken.parts
    return [refusal.reason for own in taken.rejected for refusal in own]


# --- content types ---


@pytest.mark.parametrize(
    ("content_type", "format"),
    [
        ("application/geo+json", "json"),
        ("application/json;charset=UTF-8", "json"),
        ('Application/JSON; charset="utf-8"', "json"),
        ("application/cloudevents+json", "cloudevent"),
        ("application/cloudevents-batch+json; charset=utf-8", "cloudevents"),
        ("application/x-ndjson", "ndjson"),
        ("application/jsonl", "ndjson"),
        ("application/json-seq", "geojsonseq"),
        ("application/cap+xml", "cap"),
        ("text/xml; charset=iso-8859-1", "cap"),
    ],
)
def test_the_content_type_names_the_format(content_type, format):
    assert post_of(content_type, {}, b"x") == Post(format, b"x")


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", ";"],
)
def test_other_content_types_are_refused(content_type):
    with pytest.raises(MediaTypeError, match=r"content type|charset"):
        post_of(content_type, {}, b"{}")


def test_headers_of_a_cloudevent_in_binary_mode():
    post = post_of("application/json", {**HEADERS, "ce-subject": "Ac%C3%A8s 100%25", "accept": "*/*"}, b"{}")
    context = {**EVENT, "subject": "Acès 100%", "datacontenttype": "application/json"}
    assert post == Post("json", b"{}", None, context)
    assert post_of(None, HEADERS, b"") == Post("json", b"", None, EVENT)
    assert post_of("application/cloudevents+json", HEADERS, b"{}").context is None  # structured mode counts
    with pytest.raises(MediaTypeError, match="of a CloudEvent"):
        post_of("application/x-ndjson", HEADERS, b"{}")
    for name, value in (("ce-a_b", "x"), ("ce-data", "x"), ("ce-", "x"), ("ce-x", "%ff")):
        with pytest.raises(FormatError, match="header"):
            post_of("application/json", {**HEADERS, name: value}, b"{}")


@pytest.mark.parametrize("id", ["", "x" * 257])
def test_message_ids_have_a_length(id):
    with pytest.raises(FormatError, match="Message-Id"):
        post_of("application/json", {"message-id": id}, b"{}")


# --- JSON in one line ---


@given(st.recursive(st.none() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)), st.integers(0, 3))  # fmt: skip
def test_one_line_has_the_same_values(value, indent):
    found = plain(json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\r\n")
    assert json.loads(found) == value
    assert not {b"\n"[0], b"\r"[0]} & set(found)


def test_one_line_keeps_digits_and_escapes():
    text = b'\xef\xbb\xbf{"a" : 1.10,\r\n "b": [1E+05, -0, 36893488147419103232.50],\n"c": "\\u00e9 \\n"}'
    assert plain(text) == b'{"a":1.10,"b":[1E+05,-0,36893488147419103232.50],"c":"\\u00e9 \\n"}'
    for bad in (b"{\n[", b"[\n" * 10**5 + b"]"):
        with pytest.raises(FormatError):
            plain(bad)


# --- ids ---


def ids(*posts):
    return read(*posts).ids


def test_ids_of_events_have_their_source():
    other = {**EVENT, "source": "/ship"}
    first, again, ship = ids(*(Post("json", encoded(event)) for event in (EVENT, {**EVENT, "data": 5}, other)))
    assert first == again != ship
    assert ids(Post("json", b"", None, EVENT)) == [first]
    assert ids(Post("cloudevents", encoded([EVENT, other]))) == [first, ship]
    assert len(ids(Post("json", encoded({**EVENT, "id": "x" * 10**5})))[0]) < 300
    # Text that only looks like the attributes of an event is no event.
    assert ids(Post("json", encoded({"ce": {"id": "7", "source": "/buoy"}}))) == [None]


def test_ids_of_things_need_the_same_body():
    feature = Post("json", encoded({**FEATURE, "id": "x"}))
    changed = Post("json", encoded({**FEATURE, "id": "x", "properties": {"n": 2}}))
    first, again, other, flat, none = ids(
        feature, feature, changed, Post("json", b'{"id": 7}'), Post("json", encoded(FEATURE))
    )
    assert first == again
    assert len({first, other, flat}) == 3
    assert none is None
    batch = b'{"type": "FeatureCollection",\n "features": [' + feature.body + b"]}\n"
    assert ids(Post("json", batch), Post("ndjson", feature.body + b"\r\n")) == [first, first]
    assert ids(Post("json", b'{"properties": {"id": 7}}')) == [None]


def test_the_header_names_a_single_message():
    given, other = ids(*(Post(format, encoded(EVENT), "m1") for format in ("json", "cloudevent")))
    assert given == other == "id:m1"
    one_line = Post("json", encoded({"a": "FeatureCollection"}), "m1")
    assert ids(one_line, Post("cap", alert(), "m1")) == ["id:m1"] * 2
    several = [
        Post("json", b"[{}]", "m1"),
        Post("ndjson", b"{}", "m1"),
        Post("cloudevents", encoded([EVENT]), "m1"),
        Post("json", encoded({"type": "FeatureCollection", "features": []}), "m1"),
        Post("cap", alert(INFO.format(POLYGON), INFO.format(POLYGON)), "m1"),
    ]
    for post in several:
        (reason,) = reasons(post)
        assert "Message-Id names one message" in reason


# --- CloudEvents ---


def test_events_in_binary_mode_are_delivered_in_structured_mode():
    post = post_of(
        "application/geo+json", HEADERS, b'{"type": "Feature",\n "properties": {"n": 1.50}, "geometry": null}'
    )
    message, taken = one(post)
    assert message["n"] == 1.5
    assert message["ce.datacontenttype"] == "application/geo+json"
    (body,) = taken.bodies
    assert body.endswith(b'"data":{"type":"Feature","properties":{"n":1.50},"geometry":null}}')
    assert one(Post("cloudevent", body))[0] == message
    assert one(Post("json", b"", None, EVENT))[1].bodies == [encoded(EVENT).replace(b" ", b"")]
    # The data cannot add attributes to the event.
    assert reasons(post_of("application/json", HEADERS, b'1,"subject":"x"'))
    assert reasons(post_of("application/json", {"ce-id": "7"}, b"{}")) == [
        "a CloudEvent needs source, specversion, type"
    ]


def test_events_of_a_batch():
    taken = read(Post("cloudevents", encoded([EVENT, {"n": 1}, {**EVENT, "specversion": "0.3"}, 5, EVENT])))
    assert taken.rows == [0, 4]
    assert [refusal.row for refusal in taken.rejected[0]] == [1, 2, 3]
    assert reasons(Post("cloudevents", encoded(EVENT))) == ["need an array of CloudEvents, got an object"]
    assert (
        reasons(Post("cloudevent", b'{"n": 1}'), Post("cloudevent", b"[]"))
        == ["need a CloudEvent with specversion"] * 2
    )
    assert read(Post("cloudevents", b"[]")) == ([], [], [], [], [], [[]])


def test_data_in_base64():
    event = {**EVENT, "data_base64": base64.b64encode(encoded(FEATURE)).decode()}
    assert one(Post("cloudevent", encoded(event)))[0]["n"] == 1


# --- CAP ---


def test_alerts_are_delivered_as_features():
    message, taken = one(Post("cap", alert(INFO.format(POLYGON))))
    assert message["sent"] == datetime(2024, 5, 1, 12, tzinfo=UTC)
    feature = json.loads(taken.bodies[0])
    assert ct.Region.from_geojson(feature["geometry"]) == ct.Region.from_wkt("POLYGON ((0 0, 1 0, 1 1, 0 0))")
    assert feature["properties"]["sent"] == "2024-05-01T12:00:00Z"
    assert feature["properties"]["event"] == "Storm"
    assert taken.ids == ['cap:["s@x","a7","2024-05-01T12:00:00Z"]']
    table = ct.ForwardingTable()
    table.subscribe("ann", "severity = 'Severe' AND S_INTERSECTS(area, POINT(0.9 0.5))")
    assert list(table.match_many(taken.parts[0].table)[0]) == ["ann"]


def test_blocks_and_alerts_are_messages_with_their_own_ids():
    two = alert(INFO.format(POLYGON), INFO.format(POLYGON), identifier="b8")
    taken = read(Post("cap", alert(INFO.format(POLYGON)) + two))
    assert taken.rows == [0, 1, 2]
    assert taken.ids[1:] == read(Post("cap", two)).ids
    assert len(set(taken.ids)) == 3


def test_lost_areas_and_bad_alerts():
    lost = "<polygon>0,0 1,1 0,1 1,0 0,0</polygon>"
    taken = read(Post("cap", alert(INFO.format(lost))), Post("cap", b"<alert/>"), Post("cap", b""), Post("cap", b"{}"))
    assert taken.posts == [0]
    assert taken.parts[0].table.column_names.count("area") == 0
    assert [[refusal.is_part for refusal in own] for own in taken.rejected] == [[True], [False], [False], [False]]


def test_zones_resolve_codes():
    coded = "<geocode><valueName>UGC</valueName><value>CAZ041</value></geocode>"
    zones = {("UGC", "CAZ041"): ct.Region.box(5, 5, 6, 6)}
    taken = read(Post("cap", alert(INFO.format(coded))), zones=zones)
    assert taken.rejected == [[]]
    assert json.loads(taken.bodies[0])["geometry"]["type"] == "Polygon"


def test_an_alert_as_data_of_an_event():
    message, taken = one(post_of("application/cap+xml", HEADERS, alert(INFO.format(POLYGON))))
    assert (message["ce.id"], message["event"]) == ("7", "Storm")
    assert json.loads(taken.bodies[0])["data"]["properties"]["event"] == "Storm"
    assert taken.ids == ids(Post("json", encoded(EVENT)))
    assert reasons(Post("cap", alert(), None, {"id": "7"})) == ["a CloudEvent needs source, specversion, type"]


# --- hard bodies ---


def test_empty_bodies_and_batches():
    for body in (b"", b" \r\n", b"\xef\xbb\xbf"):
        assert reasons(Post("json", body), Post("cloudevent", body)) == ["the body is empty; need JSON"] * 2
        assert read(Post("ndjson", body), Post("geojsonseq", body)).rejected == [[], []]
    for body in (b"[]", b" [ ] ", b'{"type": "FeatureCollection", "features": []}'):
        assert read(Post("json", body)) == ([], [], [], [], [], [[]])
    assert read() == ([], [], [], [], [], [])


def test_marks_blanks_and_line_ends():
    text = b'\xef\xbb\xbf \r\n{"n": 1}\r\n'
    taken = read(Post("json", text), Post("ndjson", b'\xef\xbb\xbf{"n": 1}\r\n\r\n \n{"n": 1}'))
    assert taken.bodies == [b'{"n": 1}'] * 3
    assert taken.rows == [0, 0, 3]  # row r is line r + 1
    assert taken.rejected == [[], []]


def test_the_last_of_equal_members_counts():
    message, taken = one(Post("json", b'{"n": "x", "n": 2}'))
    assert message == {"n": 2}
    assert taken.bodies == [b'{"n": "x", "n": 2}']
    # Two names that become one attribute are an error.
    assert reasons(Post("json", b'{"a.b": 1, "a": {"b": 2}}')) == ["duplicate attribute 'a.b'"]


@pytest.mark.parametrize(
    "body", [b'{"n": NaN}', b'{"n": Infinity}', b'{"n": 1e999}', b"nope", b'{"n": 1} {"n": 2}', b'{"n": "\xff"}', b"5"]
)
def test_bad_json_is_rejected_alone(body):
    good = Post("json", b'{"n": 1}')
    taken = read(good, Post("json", body), Post("ndjson", b'{"n": 2}\n' + body + b'\n{"n": 3}'), good)
    assert (taken.posts, taken.rows) == ([0, 2, 2, 3], [0, 0, 2, 0])
    assert [[refusal.row for refusal in own] for own in taken.rejected] == [[], [0], [1], []]
    assert len(taken.parts) == 1


@pytest.mark.parametrize("open", [b"[", b'{"a":', b'{"type":"Feature","properties":{"a":', b'[{"a":['])
@pytest.mark.parametrize("depth", [100, 5000, 10**6])
def test_deep_json_is_rejected(open, depth):
    good = Post("json", b'{"n": 1}')
    for format in ("json", "ndjson", "cloudevent", "cloudevents", "geojsonseq"):
        taken = read(good, Post(format, open * depth), good)
        assert taken.posts == [0, 2]
        assert taken.rejected[1]


def test_attributes_are_limited():
    deep = b'{"a":' * 70 + b"1" + b"}" * 70
    many = encoded({f"a{k}": k for k in range(10_001)})
    long = encoded({"a" * 5000: 1})
    found = reasons(*(Post("json", body) for body in (deep, many, long)))
    assert all("the limit is" in reason for reason in found), found
    assert one(Post("json", encoded({f"a{k}": k for k in range(10_000)})))


def test_vertices_are_limited():
    ring = [[0, 0], *([k, 1 + k * k] for k in range(1000, 0, -1)), [0, 0]]
    large = encoded({"type": "Polygon", "coordinates": [ring]})
    post = Post("json", b'{"n": 1, "area": ' + large + b"}")
    assert reasons(post, vertices=1000) == ["the message has 1,002 vertices; the limit is 1,000"]
    high = json.loads(large)
    high["coordinates"] = [[[*position, 5] for position in ring]]
    twice = Post("ndjson", encoded({"a": high, "b": high}) + b'\n{"n": 1}')
    taken = read(twice, vertices=2000)
    assert taken.rows == [1]
    assert taken.rejected[0][0].reason == "the message has 2,004 vertices; the limit is 2,000"


def test_a_million_vertices_are_rejected_soon():
    ring = b"[" + b",".join([b"[0,0],[1,1]"] * 500_000) + b"]"
    post = Post(
        "json",
        b'{"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [' + ring + b"]}}",
    )
    with within(10):
        assert reasons(post, vertices=100_000) == ["the message has 1,000,000 vertices; the limit is 100,000"]


def test_messages_of_a_body_are_limited():
    bodies = [
        Post("ndjson", b"{}\n" * 4),
        Post("json", b"[{}, 0, 0, 0]"),
        Post("json", encoded({"type": "FeatureCollection", "features": [FEATURE] * 4})),
        Post("cloudevents", encoded([EVENT] * 4)),
        Post("geojsonseq", b"\x1e{}\n" * 4),
        Post("cap", alert(*[INFO.format(POLYGON)] * 4)),
    ]
    assert set(reasons(*bodies, messages=3)) == {"the body has more than 3 messages; send several bodies"}
    assert len(read(*bodies, messages=4).bodies) == 6 * 4 - 3


def test_record_bytes_are_limited(monkeypatch):
    monkeypatch.setenv("CONTRADA_MAX_RECORD_BYTES", "20")
    ct.limits.limit.cache_clear()
    try:
        taken = read(Post("ndjson", b'{"n": 1}\n{"n": "' + b"x" * 20 + b'"}'))
    finally:
        monkeypatch.undo()
        ct.limits.limit.cache_clear()
    assert taken.rows == [0]
    assert "bytes in one record" in taken.rejected[0][0].reason


def test_numbers_that_no_column_holds_are_rejected():
    (reason,) = reasons(Post("json", b'{"n": 1' + b"0" * 76 + b"}"))
    assert "at most 76 digits" in reason
    assert one(Post("json", b'{"n": ' + b"9" * 76 + b"}"))


# --- tables ---


def test_values_of_different_types_go_to_different_tables():
    bodies = [{"n": 1}, {"n": "x"}, {"n": 2.5}, {"n": True}, {"m": 1}, {"n": 2**53 + 1}, {"n": 2**64}, {}]
    taken = read(*(Post("json", encoded(body)) for body in bodies))
    assert [(part.rows, part.table.schema.field("n").type) for part in taken.parts] == [
        ([0, 2, 4, 7], pa.float64()), ([1], pa.string()), ([3], pa.bool_()), ([5], pa.int64()),
        ([6], pa.decimal256(76, 0)),
    ]  # fmt: skip


def test_messages_with_different_attributes_do_not_fill_a_table_with_nulls():
    lines = b"\n".join(encoded({f"a{row}.{k}": k for k in range(10)}) for row in range(1000))
    taken = read(Post("ndjson", lines))
    cells = sum(part.table.num_rows * part.table.num_columns for part in taken.parts)
    assert cells < 40 * 10_000
    assert sorted(row for part in taken.parts for row in part.rows) == list(range(1000))


def test_a_broker_takes_every_part():
    broker = Broker("north", incarnation=1)
    broker.subscribe("ann", "all", "n IS NULL OR n = 1 OR n = 'x' OR S_INTERSECTS(geometry, POINT(1 1))")
    posts = [Post("json", body) for body in (b"{}", b'{"n": 1}', b'{"n": "x"}', b'{"n": 2}', encoded(FEATURE))]
    delivered = []
    taken = read(*posts)
    for part in taken.parts:
        effects = broker.publish(part.table, ids=[str(row) for row in part.rows])
        delivered += [effect.ids for effect in effects if type(effect).__name__ == "Deliver"]
    assert sorted(id for ids in delivered for id in ids) == ["0", "1", "2", "4"]


def test_a_retry_key_identifies_messages_without_an_id_by_their_place():
    body = b'{"n": 1}\n\n{"n": 1}\n{"n": 1, "id": 7}\n{"specversion": "1.0", "id": "7", "source": "s", "type": "t"}\n'
    headers = {"idempotency-key": "k"}
    ids = BodyReader().read([post_of("application/x-ndjson", headers, body)]).ids
    assert ids[:2] == ['retry:["k",0]', 'retry:["k",2]']
    assert [id.partition(":")[0] for id in ids] == ["retry", "retry", "body", "ce"]
    assert BodyReader().read([post_of("application/json", {**headers, "message-id": "m"}, b"{}")]).ids == ["id:m"]
    with pytest.raises(ct.ContradaError, match="Idempotency-Key"):
        post_of("application/json", {"idempotency-key": "k" * 257}, b"{}")
