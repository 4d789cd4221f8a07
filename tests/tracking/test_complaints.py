"""What users of geofences and alerts complain about elsewhere, one test for each complaint."""

import pytest

import contrada as ct
from contrada.formats.cap.alerts import read_alerts
from contrada.formats.spatial import UNCHANGED

DEPOT = "S_WITHIN(at, POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0)))"


def fix(name, x, y, second):
    return {"id": name, "at": {"type": "Point", "coordinates": [x, y]}, "time": second * 1000}


def tracker_of(on, query=DEPOT, **options):
    of_tracker = {name: options.pop(name) for name in ("late", "expire_after") if name in options}
    tracker = ct.Tracker(track="id", time="time", **of_tracker)
    tracker.subscribe("depot", query, on, **options)
    return tracker


def told(events):
    return [(event.kind, event.object, event.time // 1000) for event in events]


def test_a_position_that_oscillates_around_the_fence_does_not_flap():
    """tidwall/tile38#816: noise of GPS near a boundary gives enter and exit by turns."""
    path = [fix("car", x, 5, second) for second, x in enumerate((9, 11, 9, 10.5, 9.5, 11.5, 8, 13))]
    assert len(tracker_of("enter, exit").publish(path)) == 8
    assert told(tracker_of("enter, exit", exit_buffer=2).publish(path)) == [("enter", "car", 0), ("exit", "car", 7)]


def test_an_exit_may_wait_until_the_object_is_out_for_long_enough():
    """traccar/traccar#3609: an exit is told only if it lasts."""
    path = [fix("car", x, 5, second) for second, x in ((0, 9), (1, 11), (2, 9), (10, 11), (15, 12), (21, 13))]
    events = tracker_of("enter, exit", exit_after="10s").publish(path)
    assert told(events) == [("enter", "car", 0), ("exit", "car", 20)]


def test_vehicles_that_only_drive_past_are_not_told():
    """traccar/traccar#6019 and #2189: tell a visit only after it has lasted, not when the fence is touched."""
    tracker = tracker_of("dwell(5m)")
    assert not tracker.publish([fix("passes", 5, 5, 0), fix("stops", 5, 5, 0), fix("passes", 50, 5, 60)])
    assert told(tracker.publish([fix("stops", 6, 5, 400)])) == [("dwell", "stops", 300)]
    assert not tracker.publish([fix("stops", 7, 5, 4000)]), "once for each visit"


def test_a_dwell_is_told_though_no_fix_comes():
    """traccar/traccar#2189: a parked vehicle sends nothing."""
    tracker = tracker_of("dwell(5m)")
    tracker.publish([fix("parked", 5, 5, 0)])
    assert not tracker.advance(299_999)
    assert told(tracker.advance(300_000)) == [("dwell", "parked", 300)]
    assert not tracker.advance(9_000_000)


def test_a_fence_between_two_fixes_is_crossed():
    """traccar/traccar PR#4316: a fast vehicle has no fix inside."""
    tracker = tracker_of("enter, exit, cross")
    events = tracker.publish(
        [fix("fast", -5, 5, 0), fix("fast", 15, 5, 10), fix("slow", -5, 20, 0), fix("slow", 15, 20, 9)]
    )
    assert [(event.kind, event.object, event.before, event.after) for event in events] == [
        ("cross", "fast", ct.Relation.DISJOINT, ct.Relation.DISJOINT)
    ]
    assert told(tracker.publish([fix("fast", 5, 5, 20)])) == [("enter", "fast", 20)], "a fix inside is no crossing"


def test_late_fixes_do_not_bring_an_object_back():
    """vitalidze/traccar-web#1090: buffered positions arrive after newer ones."""
    tracker = tracker_of("enter, exit")
    tracker.publish([fix("car", 5, 5, 0), fix("car", 50, 5, 10)])
    assert not tracker.publish([fix("car", 5, 5, 5)])
    assert tracker.tracks.late == 1
    as_they_come = tracker_of("enter, exit", late="arrival")
    as_they_come.publish([fix("car", 5, 5, 0), fix("car", 50, 5, 10)])
    assert told(as_they_come.publish([fix("car", 5, 5, 5)])) == [("enter", "car", 10)]


@pytest.mark.parametrize(("first", "expected"), [("enter", [("enter", "car", 3)]), ("silent", [])])
def test_a_first_fix_inside_is_told_or_not(first, expected):
    """traccar/traccar#3897: a device appears inside, and was never outside."""
    tracker = tracker_of("enter, exit", first=first)
    assert told(tracker.publish([fix("car", 5, 5, 3)])) == expected
    assert told(tracker.publish([fix("car", 50, 5, 4)])) == [("exit", "car", 4)]


def test_several_fixes_of_one_object_at_once_miss_nothing():
    """tidwall/tile38#522: six positions of one object in one call, some inside."""
    path = [fix("bus", x, 5, second) for second, x in ((3, 5), (0, -5), (1, 5), (5, 30), (2, 30), (4, 40))]
    expected = [("enter", "bus", 1), ("exit", "bus", 2), ("enter", "bus", 3), ("exit", "bus", 4)]
    assert told(tracker_of("enter, exit").publish(path)) == expected
    same_time = [fix("bus", x, 5, 7) for x in (-5, 5, 30)]
    assert told(tracker_of("enter, exit").publish(same_time)) == [("enter", "bus", 7), ("exit", "bus", 7)]


def test_a_track_without_fixes_leaves():
    """A device that is switched off inside is not inside for ever."""
    tracker = tracker_of("enter, exit", expire_after="1h")
    tracker.publish([fix("off", 5, 5, 0)])
    events = tracker.advance(3_600_000)
    assert [(event.kind, event.reason, event.time) for event in events] == [("exit", "expired", 3_600_000)]
    assert tracker.tracks.objects == 0


# Alerts

ALERT = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>{id}</identifier><sender>s@x</sender>
<sent>{sent}</sent><status>Actual</status><msgType>{kind}</msgType><scope>Public</scope>{references}{info}</alert>"""
INFO = """<info><category>Met</category><event>{event}</event><urgency>Immediate</urgency>
<severity>{severity}</severity>
<certainty>Likely</certainty><area><areaDesc>A</areaDesc><polygon>{ring}</polygon></area></info>"""


def sent(minute):
    return f"2024-05-01T12:{minute:02}:00-00:00"


def reference(id, minute):
    return f"s@x,{id},{sent(minute)}"


def alert(id, minute, boxes=((0, 1),), kind="Alert", references=(), event="Storm", severity="Severe"):
    """Messages of an alert; boxes from west to east, one for each block."""
    blocks = "".join(
        INFO.format(event=event, severity=severity, ring=f"0,{west} 0,{east} 1,{east} 1,{west} 0,{west}")
        for west, east in boxes
    )
    said = f"<references>{' '.join(references)}</references>" if references else ""
    xml = ALERT.format(id=id, sent=sent(minute), kind=kind, references=said, info=blocks)
    return [one.message for _, alerts in read_alerts(xml.encode(), {}, UNCHANGED) for one in alerts]


@pytest.fixture
def warned():
    """Two subscribers, at x from 0 to 1 and from 2 to 3."""
    tracker = ct.Tracker(track="thread", time="sent")
    for key, west in (("west", 0), ("east", 2)):
        box = f"POLYGON (({west} 0, {west + 1} 0, {west + 1} 1, {west} 1, {west} 0))"
        tracker.subscribe(key, f"S_INTERSECTS(area, {box})", ["enter", "exit"])
    return tracker


def heard(events):
    return [(event.kind, event.key, event.reason) for event in events]


def test_an_updated_warning_does_not_alert_everyone_again(warned):
    """weather-gov/weather.gov#1321: each issue of a product looks like a new alert."""
    assert heard(warned.publish(alert("a", 0))) == [("enter", "west", "fix")]
    assert heard(warned.publish(alert("b", 5, kind="Update", references=[reference("a", 0)]))) == []
    both = [reference("b", 5), reference("a", 0)]
    assert heard(warned.publish(alert("c", 9, kind="Update", references=both))) == []


def test_updates_that_name_only_the_one_before_are_one_thread(warned):
    """Pirate-Weather/pirateweather#545: the chain of references has to be followed."""
    warned.publish(alert("a", 0))
    assert not warned.publish(alert("b", 5, kind="Update", references=[reference("a", 0)]))
    assert not warned.publish(alert("c", 6, kind="Update", references=[reference("b", 5)]))
    assert not warned.publish(alert("d", 7, kind="Update", references=[reference("c", 6)]))
    assert heard(warned.publish(alert("e", 8, kind="Cancel", references=[reference("d", 7)]))) == [
        ("exit", "west", "ended")
    ]
    assert warned.tracks.objects == 0


def test_an_update_that_grows_tells_only_the_newly_covered(warned):
    warned.publish(alert("a", 0))
    grown = alert("b", 5, boxes=[(0, 3)], kind="Update", references=[reference("a", 0)])
    assert heard(warned.publish(grown)) == [("enter", "east", "fix")]
    moved = alert("c", 6, boxes=[(2.5, 3)], kind="Update", references=[reference("a", 0)])
    assert heard(warned.publish(moved)) == [("exit", "west", "fix")]


def test_a_new_alert_of_the_same_event_is_not_lost(warned):
    """custom-components/weatheralerts#71: de-duplication by event type loses alerts elsewhere, and later ones."""
    assert heard(warned.publish(alert("a", 0))) == [("enter", "west", "fix")]
    assert heard(warned.publish(alert("z", 1))) == [("enter", "west", "fix")], "same event, same place: another alert"
    assert heard(warned.publish(alert("y", 2, boxes=[(2, 3)]))) == [("enter", "east", "fix")]
    assert heard(warned.publish(alert("x", 3, references=[reference("a", 0)]))) == [("enter", "west", "fix")]
    assert warned.tracks.objects == 4


def test_blocks_of_one_alert_are_objects_of_their_own(warned):
    """An alert in two languages, or for two areas, does not leave the one when it comes to the other."""
    two = [(0, 1), (2, 3)]
    assert heard(warned.publish(alert("a", 0, boxes=two))) == [("enter", "west", "fix"), ("enter", "east", "fix")]
    assert not warned.publish(alert("b", 5, boxes=two, kind="Update", references=[reference("a", 0)]))
    cancelled = alert("c", 6, boxes=[], kind="Cancel", references=[reference("b", 5)])
    assert heard(warned.publish(cancelled)) == [("exit", "west", "ended"), ("exit", "east", "ended")]


def test_a_warning_that_becomes_worse_is_told_to_those_who_ask_for_it():
    tracker = ct.Tracker(track="thread", time="sent")
    box = "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"
    tracker.subscribe("extreme", f"S_INTERSECTS(area, {box}) AND severity = 'Extreme'", ["enter"])
    assert not tracker.publish(alert("a", 0))
    worse = alert("b", 5, kind="Update", references=[reference("a", 0)], severity="Extreme")
    assert heard(tracker.publish(worse)) == [("enter", "extreme", "fix")]
