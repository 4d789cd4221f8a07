"""Markup in keys, names, values and filters stays text: nothing runs, and no element comes of it."""

import urllib.request

import pytest
from playwright.sync_api import expect

from browser import PHONE, context, watch
from contrada.client import Client
from live_map import LiveMap
from server_process import serving

pytestmark = pytest.mark.slow

MARKUP = [
    '<img src=x onerror="alert(1)">',
    "<script>alert(2)</script>",
    '"><svg onload=alert(3)>',
    "javascript:alert(4)",
    "{{alert(5)}} ${alert(6)} &lt;b&gt;",
]
# Elements that markup would make; the page itself has no such ones.
MADE = 'img[src="x"], img[onerror], svg[onload], [onclick], [onload], script:not([src]), a[href^="javascript"], iframe'
AREA = "POLYGON ((11.2 43.2, 11.5 43.2, 11.5 43.5, 11.2 43.5, 11.2 43.2))"
VIEW = (11.35, 43.35, 10)


def quoted(text):
    """Text as CQL2 has it."""
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A server that has nothing but markup."""
    with serving(tmp_path_factory.mktemp("hostile")) as server, Client(server.url, server.key) as client:
        for k, text in enumerate(MARKUP):
            name = '"' + text.replace('"', '""') + '"'
            filter = f"S_INTERSECTS(geometry, {AREA}) AND {name} = {quoted(text)}"
            client.subscribe(f"{text} {k}", text, filter)
        client.subscribe("track <b>bold</b>", MARKUP[0], f"S_WITHIN(at, {AREA})", track="bus<i>")
        client.publish(
            {text: text for text in MARKUP}
            | {"geometry": {"type": "Point", "coordinates": [11.3, 43.3]}, "nested": {MARKUP[0]: [MARKUP[1]]}},
            id=MARKUP[0],
        )
        client.publish({"bus<i>": MARKUP[1], "at": {"type": "Point", "coordinates": [11.4, 43.4]}})
        yield server


@pytest.mark.parametrize("size", [(1440, 900), PHONE], ids=["wide", "phone"])
def test_markup_stays_text(chromium, hostile, size):
    with context(chromium, size) as window:
        page = window.new_page()
        seen = watch(page, hostile.url)
        shown = LiveMap(page, hostile.url)
        shown.open(VIEW)
        shown.log_in(hostile.key)
        shown.wait_for_subscriptions(len(MARKUP) + 1)
        shown.wait_for_message(2)
        for key in [f"{text} {k}" for k, text in enumerate(MARKUP)]:
            shown.open(VIEW, message="1", subscription=key, panel="ask")
            expect(page.get_by_role("tabpanel").get_by_text(key, exact=False).first).to_be_visible()
            assert page.locator(MADE).count() == 0
        for panel in ("Messages", "Ask", "Do", "Tracks", "Network"):
            shown.panel(panel)
            page.wait_for_timeout(200)
            assert page.locator(MADE).count() == 0, panel
        for place in ([11.3, 43.3], [11.4, 43.4]):
            page.mouse.move(*shown.pixel(tuple(place)), steps=3)
            shown.click_map(tuple(place))
            page.wait_for_timeout(200)
        assert page.locator(MADE).count() == 0
    seen.check()


def test_a_dropped_file_with_markup_stays_text(chromium, hostile, tmp_path):
    file = tmp_path / "<img src=x onerror=alert(7)>.geojson"
    file.write_text(
        '{"type": "Feature", "geometry": {"type": "Point", "coordinates": [11.3, 43.3]},'
        ' "properties": {"<script>alert(8)</script>": "<img src=x onerror=alert(9)>"}}'
    )
    with context(chromium) as window:
        page = window.new_page()
        seen = watch(page, hostile.url)
        shown = LiveMap(page, hostile.url)
        shown.open(VIEW)
        shown.log_in(hostile.key)
        form = shown.form("Message")
        form.get_by_label("Drop a GeoJSON").set_input_files(file)
        expect(form.get_by_text(file.name)).to_be_visible()
        article = shown.submit(form, "Publish", "Message 3")
        expect(article.get_by_text("<script>alert(8)</script>").first).to_be_visible()
        assert page.locator(MADE).count() == 0
    seen.check()


def test_the_policy_forbids_inline_script_and_other_origins(hostile):
    with urllib.request.urlopen(f"{hostile.url}/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        text = answer.read().decode()
    parts = {part.split()[0]: part.split()[1:] for part in policy.split(";") if part.strip()}
    assert parts["default-src"] in (["'self'"], ["'none'"])
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "http:", "https:"} & {
        one for part in parts.values() for one in part
    }
    assert parts.get("object-src", parts["default-src"]) == ["'none'"]
    assert parts["frame-ancestors"] == ["'none'"]
    assert parts["base-uri"] in (["'none'"], ["'self'"])
    assert "<style" not in text
    assert " style=" not in text
    assert all(" src=" in tag for tag in text.split("<script")[1:])
