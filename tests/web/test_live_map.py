"""The live map in a browser: draw, subscribe, publish, see the match and its reason, reload, and all is still there."""

import json
import re
from itertools import count
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

import tour
from browser import context, watch
from contrada.client import Client
from live_map import LiveMap
from server_process import serving

pytestmark = pytest.mark.slow

AREA = "POLYGON ((11.30 43.30, 11.36 43.30, 11.36 43.34, 11.30 43.34, 11.30 43.30))"
NUMBERS = count(1)
INSIDE, OUTSIDE = [11.33, 43.32], [11.40, 43.36]
VIEW = (11.34, 43.33, 12.0)
CAP = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
  <identifier>siena-1</identifier><sender>met@example.org</sender><sent>2026-11-18T12:00:00-00:00</sent>
  <status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
  <info><category>Met</category><event>Hail</event><urgency>Immediate</urgency><severity>Severe</severity>
    <certainty>Observed</certainty><headline>Hail over Siena</headline>
    <area><areaDesc>Siena</areaDesc>
      <polygon>43.31,11.31 43.31,11.35 43.33,11.35 43.33,11.31 43.31,11.31</polygon></area>
  </info>
</alert>
"""
GEOJSON = (
    '{"type": "Feature", "properties": {"depth": 7}, "geometry": {"type": "Polygon", "coordinates": '
    "[[[11.31, 43.31], [11.35, 43.31], [11.35, 43.33], [11.31, 43.33], [11.31, 43.31]]]}}"
)
WKT = "POLYGON ((11.31 43.31, 11.35 43.31, 11.35 43.33, 11.31 43.33, 11.31 43.31))"


def point(place, **attributes):
    return {**attributes, "geometry": {"type": "Point", "coordinates": place}}


class Tenant(NamedTuple):
    """The address of a server, and a key of a tenant who has it to himself."""

    url: str
    key: str


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("live")) as found:
        yield found


@pytest.fixture
def server(shared):
    asked = {"name": "test", "tenant": f"tenant-{next(NUMBERS)}", "scopes": ["publish", "subscribe", "admin"]}
    headers = {"Authorization": f"Bearer {shared.key}", "Content-Type": "application/json"}
    with urlopen(Request(f"{shared.url}/keys", json.dumps(asked).encode(), headers)) as answer:
        return Tenant(shared.url, json.load(answer)["key"])


@pytest.fixture
def own_server(tmp_path):
    """A server of one test, whose messages are numbered from 1 and which may be killed."""
    with serving(tmp_path) as found:
        yield found


@pytest.fixture
def client(server):
    with Client(server.url, server.key) as found:
        yield found


@pytest.fixture
def live(chromium, server):
    """A page that is signed in; it must stay free of errors, dialogs and requests to others."""
    with context(chromium) as window:
        shown = LiveMap(window.new_page(), server.url)
        seen = watch(shown.page, server.url)
        shown.open(VIEW)
        shown.log_in(server.key)
        yield shown
        seen.check()


def test_a_tour_from_drawing_to_the_reason(chromium, own_server):
    with Client(own_server.url, own_server.key) as client, context(chromium) as window:
        tour.prepare(client)
        shown = LiveMap(window.new_page(), own_server.url)
        seen = watch(shown.page, own_server.url)
        tour.take(shown, client, own_server.key)
        seen.check()
        assert client.get("old-town").subscriber == "civil protection"


def test_a_wrong_key_is_refused_and_forgotten(chromium, server):
    with context(chromium) as window:
        page = window.new_page()
        LiveMap(page, server.url).open()
        page.get_by_label("API key").fill("no such key")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text(re.compile("key", re.IGNORECASE))
        page.reload()
        expect(page.get_by_label("API key")).to_have_value("")


def test_why_not_names_the_constraint_that_fails(live, client):
    client.subscribe("deep", "ann", f"S_INTERSECTS(geometry, {AREA}) AND depth > 5")
    shallow = client.publish(point(INSIDE, depth=2)).last
    outside = client.publish(point(OUTSIDE, depth=9)).last
    live.wait_for_message(outside)
    for sequence, told in ((shallow, "depth"), (outside, "apart")):
        live.open(VIEW, message=str(sequence), subscription="deep", panel="ask")
        reasons = live.page.get_by_role("list", name="Reasons")
        expect(reasons).to_contain_text("no")
        expect(reasons).to_contain_text(told)


def test_a_dry_run_tells_what_would_have_matched(live, client):
    published = [client.publish(point(INSIDE, depth=depth)).last for depth in (1, 6, 9)]
    live.wait_for_message(published[-1])
    form = live.form("Subscription")
    form.get_by_label("Filter as CQL2").fill(f"S_INTERSECTS(geometry, {AREA}) AND depth > 5")
    form.get_by_role("button", name="Dry run").click()
    expect(form.get_by_role("region", name="Dry run")).to_contain_text("2 messages of 3")
    expect(form.get_by_role("list", name="Messages of the dry run").get_by_role("button")).to_have_count(2)
    assert [one.key for one in client.list()] == []


def test_form_and_text_follow_each_other(live):
    form = live.form("Subscription")
    live.draw_rectangle(form, (11.31, 43.31), (11.35, 43.34))
    live.fill_condition(form, "depth", ">", 5)
    text = form.get_by_label("Filter as CQL2")
    expect(text).to_have_value(re.compile(r"S_INTERSECTS\(geometry, .*\) AND depth > 5", re.DOTALL | re.IGNORECASE))
    text.fill(text.input_value().replace("depth > 5", "depth > 7"))
    expect(form.get_by_role("group", name="Condition").get_by_label("Value")).to_have_value("7")
    text.fill("depth >")
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_role("alert").first).to_be_visible()


def test_a_subscription_is_paused_resumed_and_deleted(live, client):
    client.subscribe("deep", "ann", f"S_INTERSECTS(geometry, {AREA})")
    live.wait_for_subscriptions(1)
    live.open(VIEW, subscription="deep", panel="ask")
    panel = live.panel("Ask")
    panel.get_by_role("button", name="Pause").click()
    expect(panel.get_by_role("button", name="Resume")).to_be_visible()
    assert client.get("deep").paused
    panel.get_by_role("button", name="Resume").click()
    expect(panel.get_by_role("button", name="Pause")).to_be_visible()
    assert not client.get("deep").paused
    panel.get_by_role("button", name="Delete").click()
    question = panel.get_by_role("group").filter(has=live.page.get_by_role("button", name="Keep it"))
    question.get_by_role("button", name="Delete").click()
    expect(live.page.get_by_role("article", name="Subscription deep")).to_have_count(0)
    live.wait_for_subscriptions(0)
    assert list(client.list()) == []


@pytest.mark.parametrize(("name", "text"), [("area.geojson", GEOJSON), ("area.wkt", WKT), ("alert.cap", CAP)])
def test_files_become_regions_of_a_subscription(live, client, tmp_path, name, text):
    form = live.form("Subscription")
    drop(form, name, text)
    expect(form.get_by_label("WKT or coordinates")).to_have_value(re.compile("POLYGON"))
    form.get_by_label("Key").fill("dropped")
    form.get_by_label("Subscriber").fill("ann")
    live.submit(form, "Subscribe", "Subscription dropped")
    inside = client.publish(point([11.33, 43.32])).last
    client.publish(point([11.36, 43.32]))
    assert [one.sequence for one in client.dry_run(client.get("dropped").filter).sample] == [inside]


def test_a_dropped_alert_is_published(live, client):
    client.subscribe("hail", "ann", f"S_INTERSECTS(area, {AREA})")  # an alert has its region as `area`
    form = live.form("Message")
    drop(form, "alert.cap", CAP)
    expect(form.get_by_label("WKT or coordinates")).to_have_value(re.compile("POLYGON"))
    article = live.submit(form, "Publish", "Message")
    expect(article.get_by_role("list", name="Subscriptions that matched")).to_contain_text("hail")


def test_a_typed_region_is_published_by_the_next_click(live, client):
    form = live.form("Message")
    text = form.get_by_label("WKT or coordinates")
    text.fill("POLYGON ((11.3 43.3, 11.4 43.3, 11.4")
    form.get_by_role("button", name="Publish", exact=True).click()
    expect(form.get_by_role("alert").first).to_be_visible()
    text.fill("POLYGON ((11.3 43.3, 11.4 43.3, 11.4 43.4, 11.3 43.3))")
    live.submit(form, "Publish", "Message")
    assert client.dry_run("S_INTERSECTS(geometry, POINT (11.39 43.31))").count == 1


def drop(form, name, text):
    """Drop a file with the mouse, as the page sees it."""
    handle = form.page.evaluate_handle(
        """([name, text]) => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], name));
            return carried;
        }""",
        [name, text],
    )
    zone = form.locator(".drop-zone").first
    for event in ("dragover", "drop"):
        zone.dispatch_event(event, {"dataTransfer": handle})


def test_tracked_objects_enter_and_leave(live, client):
    client.subscribe("depot", "fleet", f"S_WITHIN(geometry, {AREA})", track="bus", on=["enter", "exit"])
    live.wait_for_subscriptions(1)
    panel = live.panel("Tracks")
    client.publish(point(OUTSIDE, bus="b7"))
    client.publish(point(INSIDE, bus="b7"))
    log = panel.get_by_role("list", name="Enters and leaves")
    expect(log.get_by_role("listitem").first).to_contain_text("b7")
    expect(log.get_by_role("listitem").first).to_contain_text("depot")
    expect(panel.get_by_role("button", name="b7 inside depot")).to_be_visible()
    client.publish(point(OUTSIDE, bus="b7"))
    expect(log.get_by_role("listitem")).to_have_count(2)
    expect(panel.get_by_role("button", name="b7 outside of all")).to_be_visible()


def test_a_permalink_restores_view_time_and_selection(live, client, chromium, server):
    client.subscribe("deep", "ann", f"S_INTERSECTS(geometry, {AREA})")
    sequence = client.publish(point(INSIDE, depth=1)).last
    live.wait_for_message(sequence)
    at = next(iter(client.dry_run("depth = 1").sample)).at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    view = (11.331, 43.3215, 13.25)
    live.open(view, message=str(sequence), subscription="deep", panel="ask", time=at)
    expect(live.page.get_by_role("list", name="Reasons")).to_be_visible()
    live.wait_for_link(at=",".join(map(str, view)), message=str(sequence), subscription="deep", time=at)
    address = live.page.url
    with context(chromium) as window:
        other = LiveMap(window.new_page(), server.url)
        other.page.goto(address)
        other.log_in(server.key)
        expect(other.page.get_by_role("list", name="Reasons")).to_be_visible()
        assert [round(float(part), 4) for part in other.link["at"].split(",")] == list(view)
        assert other.link["message"] == str(sequence)
        assert other.link["subscription"] == "deep"
        assert other.link["time"] == live.link["time"]


def test_a_restart_of_the_server_loses_nothing(chromium, own_server):
    with Client(own_server.url, own_server.key) as client, context(chromium) as window:
        live = LiveMap(window.new_page(), own_server.url)
        live.open(VIEW)
        live.log_in(own_server.key)
        client.subscribe("deep", "ann", f"S_INTERSECTS(geometry, {AREA})")
        client.publish(point(INSIDE, depth=1))
        live.wait_for_message(1)
        own_server.kill()
        expect(live.page.get_by_test_id("connection")).not_to_have_attribute("data-state", "live")
        own_server.start()
        for depth in range(2, 7):
            client.publish(point(INSIDE, depth=depth))
        client.subscribe("deeper", "ann", f"S_INTERSECTS(geometry, {AREA}) AND depth > 3")
        live.wait_until_live()
        live.wait_for_message(6)
        live.wait_for_subscriptions(2)
        expect(live.messages).to_have_count(6)


def test_what_was_drawn_is_there_after_a_reload(live, client):
    client.subscribe("deep", "ann", f"S_INTERSECTS(geometry, {AREA})")
    sequence = client.publish(point(INSIDE, depth=1)).last
    live.wait_for_message(sequence)
    live.page.reload()  # The key is kept for the tab.
    live.wait_until_live()
    live.wait_for_subscriptions(1)
    live.wait_for_message(sequence)
