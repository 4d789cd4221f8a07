"""Bodies of requests as columns: every message matches as it does alone; bad ones cost the others nothing."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.formats.messages import message_of
from contrada.service.intake import BodyReader, Post
from effort import examples

QUERIES = (
    "n >= 1", "n = 9007199254740993", "n < 0.5", "m = 2.5", "n = 1267650600228229401496703205376", "name = 'b'",
    "name LIKE 'B%'", "CASEI(name) = CASEI('B')", "name = TRUE", "n = '1'", "n IS NULL", "tags IS NOT NULL",
    "id = 7", "id = 'x'", "a.b > 1", "a.b = 'x'", "\"ce.time\" > TIMESTAMP('2024-05-01T12:00:00Z')",
    "\"ce.type\" = 'wave'", "geometry IS NULL", "area IS NOT NULL",
    "S_INTERSECTS(geometry, POLYGON((1 1, 3 1, 3 3, 1 3, 1 1)))",
    "S_WITHIN(geometry, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))",
    "S_CONTAINS(area, POLYGON((1 1, 2 1, 2 2, 1 2, 1 1)))", "S_EQUALS(geometry, POLYGON((0 0, 2 0, 2 2, 0 2, 0 0)))",
    "S_INTERSECTS(area, POLYGON((1 1, 3 1, 3 3, 1 3, 1 1)))",
)  # fmt: skip


@pytest.fixture(scope="module")
def table():
    made = ct.ForwardingTable()
    for query in QUERIES:
        made.subscribe("ann", query, key=query)
    return made


def box(x, y, w, h):
    return [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]


def ring(x, y, w, h, height=False):
    return [[*position, 7.5] for position in box(x, y, w, h)] if height else box(x, y, w, h)


small = st.integers(0, 3)
size = st.integers(0, 3)  # 0: not a region
rings = st.builds(ring, small, small, size, size, st.sampled_from([False, False, False, True]))
odd_coordinates = st.sampled_from(
    [None, [], [[]], [[[]]], 5, "x", [["ab"]], [[[0, 0], [1, None], [1, 1], [0, 0]]],
     [[[True, 0], [2, 0], [2, 2], [1, 0]]],
     [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]], [[[200, 0], [201, 0], [201, 1], [200, 0]]], [["", "", "", ""]],
     [1, 2, 3], [200, 1], [1, True],
     [[[0, 0], [10**400, 0], [1, 1], [0, 0]]], [[[0, 0], [2**60 + 1, 0], [1, 1], [0, 0]]],
     [box(0, 0, 3, 3), box(1, 1, 1, 1)], [box(0, 0, 3, 3), []], [[box(0, 0, 1, 1)], [box(2, 2, 1, 1)]]]
)  # fmt: skip
geometries = st.one_of(
    st.builds(lambda shell: {"type": "Polygon", "coordinates": [shell]}, rings),
    st.builds(
        lambda shells: {"type": "MultiPolygon", "coordinates": [[one] for one in shells]}, st.lists(rings, max_size=2)
    ),
    st.builds(lambda x, y: {"type": "Point", "coordinates": [x, y]}, small, small),
    st.builds(lambda kind, value: {"type": kind, "coordinates": value},
              st.sampled_from(["Polygon", "MultiPolygon", "Point", "LineString"]), odd_coordinates),
    st.none(),
)  # fmt: skip
scalars = st.one_of(
    st.integers(-1, 3), st.sampled_from([0.5, 2.5, -0.0, 2**53 + 1, -(2**63), 2**63, 2**100, 1e300]),
    st.sampled_from(["", "b", "Bè", "1", "x"]),
    st.booleans(), st.none(), st.sampled_from([[], [1], [[1], "x"]]),
)  # fmt: skip
flat = st.dictionaries(st.sampled_from(["n", "m", "name", "tags", "id", "a.b", "ü"]), scalars, max_size=4)
objects = st.one_of(
    flat,
    st.builds(lambda own, area: {**own, "area": area}, flat, geometries),
    st.builds(
        lambda own, inner: {**own, "a": inner}, flat, st.dictionaries(st.sampled_from("bc"), scalars, max_size=2)
    ),
)  # fmt: skip
features = st.builds(
    lambda own, geometry, more: {"type": "Feature", "properties": own, "geometry": geometry, **more},
    st.one_of(objects, st.none(), st.just([])),
    st.one_of(geometries, st.just({"type": "Polygon"})),
    st.sampled_from([{}, {}, {"id": "x"}, {"id": 7}, {"id": [1]}, {"bbox": [0, 0, 1, 1]}, {"extra": 1},
                     {"crs": {"type": "name", "properties": {"name": "EPSG:3857"}}}]),
)  # fmt: skip
contexts = st.sampled_from(
    [
        {},
        {"time": "2024-05-01T13:00:00Z"},
        {"time": "2024-05-01T12:00:00.000000001Z"},
        {"time": "soon"},
        {"n": 3},
        {"x": 1.5},
    ]
)
events = st.builds(
    lambda more, data: {"specversion": "1.0", "id": "7", "source": "/buoy", "type": "wave", **more, **data},
    contexts,
    st.one_of(st.just({}), st.builds(lambda data: {"data": data}, st.one_of(objects, features, scalars))),
)
messages = st.one_of(
    objects, features, events, st.sampled_from([{"specversion": "0.3"}, 5, "x", None, {"type": "Feature"}])
)
indents = st.sampled_from([None, None, 1])


def encoded(value, indent=None):
    return json.dumps(value, indent=indent, ensure_ascii=False).encode()


# A post, and the JSON of each of its messages with its row.
single_posts = st.builds(
    lambda value, indent: (Post("json", encoded(value, indent)), [(0, encoded(value))]),
    messages.filter(lambda v: type(v) is dict),
    indents,
)
line_posts = st.builds(
    lambda values: (Post("ndjson", b"\n".join(map(encoded, values))), list(enumerate(map(encoded, values)))),
    st.lists(messages, max_size=4),
)
array_posts = st.builds(
    lambda values, indent: (Post("json", encoded(values, indent)), list(enumerate(map(encoded, values)))),
    st.lists(messages, max_size=4),
    indents,
)
sequence_posts = st.builds(
    lambda values, indent: (
        Post("geojsonseq", b"".join(b"\x1e" + encoded(value, indent) + b"\n" for value in values)),
        list(enumerate(map(encoded, values))),
    ),
    st.lists(messages, max_size=3),
    indents,
)
broken = st.sampled_from([b"", b"  ", b"{", b"[NaN]x", b"\xff", b'{"a": 1} {"b": 2}', b"[" * 5000, b'{"a":' * 5000])
broken_posts = st.builds(lambda body: (Post("json", body), [(0, b"{")]), broken)
posts = st.one_of(single_posts, line_posts, array_posts, sequence_posts, broken_posts)


def alone(table, text):
    """The keys that a message matches alone; None if it is rejected."""
    try:
        return set(table.match_keys(message_of(text)))
    except ct.ContradaError:
        return None


def matched(table, taken):
    """The keys that each message matches in its part."""
    found = [None] * len(taken.bodies)
    for part in taken.parts:
        assert part.rows == sorted(part.rows)
        assert part.table.num_rows == len(part.rows)
        answer = table.match_many(part.table, by="subscription")
        assert not answer.rejected
        for place, row in enumerate(part.rows):
            assert found[row] is None
            found[row] = set(answer.keys(place))
    return found


@settings(max_examples=examples(2000))
@given(st.lists(posts, max_size=8))
def test_every_message_matches_as_it_does_alone(table, given):
    taken = BodyReader().read([post for post, _ in given])
    expected = [(number, row, alone(table, text)) for number, (_, texts) in enumerate(given) for row, text in texts]
    assert list(zip(taken.posts, taken.rows, matched(table, taken), strict=True)) == [
        each for each in expected if each[2] is not None
    ]
    rejected = [(number, refusal.row) for number, own in enumerate(taken.rejected) for refusal in own]
    assert rejected == [(number, row) for number, row, keys in expected if keys is None]
    texts = {(number, row): text for number, (_, texts) in enumerate(given) for row, text in texts}
    for post, row, body in zip(taken.posts, taken.rows, taken.bodies, strict=True):
        assert json.loads(body) == json.loads(texts[post, row])
        assert b"\n" not in body
        assert message_of(body) == message_of(texts[post, row])


@settings(max_examples=examples(400))
@given(st.lists(st.one_of(single_posts, single_posts, single_posts, posts), max_size=6))
def test_a_few_messages_read_one_by_one_are_those_read_as_columns(table, given):
    own = [post for post, _ in given]
    together, singly = BodyReader().read(own), BodyReader().read_singly(own)
    if singly is None:  # a batch, or a bad message
        assert any(together.rejected) or any(post.format != "json" or post.body[:1] == b"[" for post in own)
        return
    assert singly[1:] == together[1:]
    ((messages, places),) = singly.parts
    assert places == list(range(len(own)))
    assert [set(table.match_keys(message)) for message in messages] == matched(table, together)


def test_many_or_large_posts_are_not_read_one_by_one():
    post, ring = Post("json", b'{"n": 1}'), [[k, k * k] for k in range(100)]
    large = Post("json", encoded({"area": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}))
    assert BodyReader().read_singly([post] * 32) is not None
    assert BodyReader().read_singly([post] * 33) is None
    assert BodyReader().read_singly([large]) is not None
    assert BodyReader(vertices=50).read_singly([large]) is None
    assert BodyReader().read_singly([post, Post("json", b'{"text": "' + b"x" * 70_000 + b'"}')]) is None
