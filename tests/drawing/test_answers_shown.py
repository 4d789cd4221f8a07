"""Answers, explanations and events show themselves in notebooks, bounded and escaped."""

import xml.etree.ElementTree as ET

import pytest

import contrada as ct

HOSTILE = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</style><b>", "]]>", "&amp;", "\x00\x07\ud800",
    "\u202egnirts", "a" * 100_000, "$x$",
]  # fmt: skip
TAGS = {
    "x", "style", "div", "p", "span", "b", "code", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption",
    "svg", "g", "path",
}  # fmt: skip
MAX_BYTES = 200_000
HARBOUR = ct.Region.box(9, 1, 14, 5)


def shown(value):
    """What a value shows: the elements, which are ours alone, and their text without the style sheet."""
    html = value._repr_html_()
    assert len(html) < MAX_BYTES
    root = ET.fromstring(f"<x>{html}</x>")
    assert {element.tag for element in root.iter()} <= TAGS
    assert all(not name.startswith("on") for element in root.iter() for name in element.attrib)
    texts = [" ".join("".join(part.itertext()).split()) for part in root if part.tag != "style"]
    return root, " ".join(texts)


def cells(root):
    """The rows of all tables, as texts."""
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


@pytest.fixture
def table():
    made = ct.ForwardingTable()
    made.subscribe("ann", "S_INTERSECTS(area, BBOX(9, 1, 14, 5)) AND severity >= 3", key="harbour")
    made.subscribe("bob", "S_WITHIN(area, BBOX(0, 0, 2000, 2000)) OR price < 100 AND kind = 'berth'", key="sea")
    return made


def test_an_answer_names_who_matches(table):
    _, text = shown(table.match({"area": ct.Region.box(8, 0, 10, 2), "severity": 4}))
    assert text == "2 matches 'ann', 'bob'"
    _, text = shown(table.match({"severity": 4}))
    assert text == "no match"


def test_long_answers_show_the_first_names():
    table = ct.ForwardingTable()
    for k in range(1000):
        table.subscribe(f"name {k}", "a = 1")
    _, text = shown(table.match({"a": 1}))
    assert text.startswith("1,000 matches 'name 0', 'name 1'")
    assert text.endswith("and 976 more")
    root, text = shown(table.match_many([{"a": k % 2} for k in range(5000)]))
    assert text.startswith("2,500 of 5,000 messages match; 2,500,000 matches by subscriber")
    assert "the first 12 of 5,000 messages" in text
    assert cells(root)[2][1] == "1,000"
    assert "and 994 more" in cells(root)[2][2]


def test_an_answer_to_many_tells_totals_and_rejections(table):
    messages = [{"area": ct.Region.box(8, 0, 10, 2), "severity": 4}, {"severity": {1}}, {}]
    root, text = shown(table.match_many(messages, by="subscription"))
    assert text.startswith("1 of 3 messages matches; 2 matches by subscription")
    assert cells(root)[1] == ["0", "2", "'harbour', 'sea'"]
    assert "1 rejected" in text
    assert cells(root)[-1][0] == "1"
    assert "'severity': type 'set' cannot be matched" in cells(root)[-1][1]
    assert shown(table.match_many([]))[1] == "0 of 0 messages match; 0 matches by subscriber"


def test_an_explanation_has_each_constraint_with_value_and_verdict(table):
    root, text = shown(table.explain({"area": ct.Region.box(8, 0, 10, 2), "severity": 2}, "harbour"))
    assert text.startswith("no match 'harbour' of 'ann' does not match: 1 of 2 constraints fails.")
    assert "written: S_INTERSECTS(area, BBOX(9, 1, 14, 5)) AND severity >= 3" in text
    assert cells(root)[1:] == [
        ["yes", "S_INTERSECTS(area, POLYGON ((9 1, 14 1, 14 5, 9 5, ...)))", "area overlaps it"],
        ["no", "severity >= 3", "severity is 2"],
    ]
    (picture,) = root.iter("svg")
    assert picture.get("aria-label") == "area overlaps it"
    assert len(list(picture.iter("path"))) == 2
    assert [part.text for part in root.iter("b")] == ["filter 1", "overlaps"]


def test_all_filters_are_shown_and_the_nearest_is_named(table):
    _, text = shown(table.explain({"price": 50, "kind": "crane"}, "sea"))
    assert "filter 1, nearest" in text
    assert "area is absent" in text
    _, text = shown(table.explain({"price": 50, "kind": "berth"}, "sea"))
    assert text.startswith("match 'sea' of 'bob' matches.")


def test_a_small_region_gets_a_second_picture(table):
    root, text = shown(table.explain({"area": ct.Region.box(100, 100, 101, 101)}, "sea"))
    assert len(list(root.iter("svg"))) == 2
    assert "around the smaller one" in text
    _, near = root.iter("svg")
    assert len(list(near.iter("path"))) == 2, "it is within the large one, which fills the picture"


@pytest.mark.parametrize(("where", "dots"), [(ct.Point(10, 2), 1), (ct.Point(9, 1), 1), (ct.Point(-1e100, 1e-100), 2)])
def test_points_and_regions_far_from_them_are_dots(table, where, dots):
    root, _ = shown(table.explain({"area": where, "severity": 4}, "harbour"))
    paths = [path.get("d") for path in root.iter("path")]
    assert sum(data.endswith("h0") for data in paths) == dots


def test_two_points_are_drawn():
    table = ct.ForwardingTable()
    table.subscribe("ann", "S_EQUALS(place, POINT(1 2))", key="k")
    for x in (1, 7):
        root, _ = shown(table.explain({"place": ct.Point(x, 2)}, "k"))
        assert sum(path.get("d").count("h0") for path in root.iter("path")) == 2


def test_long_explanations_are_cut():
    table = ct.ForwardingTable()
    boxes = [f"S_INTERSECTS(area, BBOX({k}, 0, {k + 1}, 1)) AND a{k} = 1" for k in range(200)]
    table.subscribe("ann", " OR ".join(boxes), key="k")
    root, text = shown(table.explain({"area": ct.Region.box(0, 0, 500, 1), "a150": 1, "a151": 2}, "k"))
    assert "12 of 200 filters" in text
    assert len(list(root.iter("svg"))) == 24, "twelve, and as many around the smaller region"
    wide = " AND ".join(f"b{k} = 1" for k in range(100))
    table.subscribe("ann", wide, key="wide")
    _, text = shown(table.explain({}, "wide"))
    assert "40 of 100 constraints" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    plain = text.encode(errors="ignore").decode()
    table = ct.ForwardingTable()
    name = plain.replace("\x00", "")[:3000] or "none"
    query = ct.Filter([ct.Constraint(name, "=", plain), ct.Constraint("area", ct.Relation.OVERLAPS, HARBOUR)])
    table.subscribe(plain or "none", query, key="k")
    message = {name: plain, "area": ct.Region.box(8, 0, 10, 2)}
    for value in (
        table.explain(message, "k"),
        table.explain({}, "k"),
        table.match(message),
        table.match_many([message]),
    ):
        shown(value)
    shown(table.match_many([{name: {1}, "area": object()}]))


def test_events_of_tracked_objects_are_a_table():
    tracker = ct.Tracker(track="bus", time="at")
    tracker.subscribe("<depot>", "S_WITHIN(place, BBOX(0, 0, 10, 10))", on="enter, exit")
    fixes = [{"bus": 7, "place": ct.Point(x, 5), "at": 60_000 * k} for k, x in enumerate([-3, 4, 12])]
    root, text = shown(tracker.publish([*fixes, {"place": ct.Point(1, 1)}]))
    assert text.startswith("2 events")
    assert cells(root)[1] == ["enter", "'<depot>'", "7", "disjoint", "inside", "1970-01-01 00:01:00.000", "fix"]
    assert "1 rejected" in text
    many = [{"bus": 7, "place": ct.Point(5 if k % 2 else 50, 5), "at": 60_000 * (10 + k)} for k in range(100)]
    _, text = shown(tracker.publish(many))
    assert "the first 24 of 99 events" in text
    assert shown(tracker.publish([]))[1] == "0 events"
