"""A tour of the live map: what a newcomer does first, step by step, with a picture of each step.

The test in tests/web asserts it, and `python -m benchmarks.pictures.map_page` photographs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from contrada.client import Client
from live_map import LiveMap

VIEW = (11.335, 43.322, 12.6)  # Siena
OLD_TOWN = (11.3265, 43.3135), (11.3405, 43.3245)  # corners of what is drawn
STORM = [(11.334, 43.3165), (11.352, 43.318), (11.35, 43.331), (11.336, 43.329)]
SAMPLES = {  # Key: subscriber and filter
    "hospital": ("Red Cross", "S_INTERSECTS(geometry, {}) AND severity >= 1", (11.352, 43.338, 11.364, 43.346)),
    "vineyards": ("growers", "S_INTERSECTS(geometry, {}) AND hail = TRUE", (11.295, 43.325, 11.318, 43.342)),
    "ring-road": ("traffic", "S_INTERSECTS(geometry, {})", (11.343, 43.302, 11.372, 43.313)),
}
DEPOT = (11.302, 43.3015, 11.321, 43.3125)
Shoot = Callable[[str, str, Page], None]  # Name, caption and page of a picture


def no_picture(name: str, caption: str, page: Page) -> None:
    """Take no picture."""


def box(xmin: float, ymin: float, xmax: float, ymax: float) -> str:
    """Return a box as WKT with corners cut, so that it looks like a place."""
    x, y = (xmax - xmin) / 5, (ymax - ymin) / 5
    below, above = (
        [(xmin + x, ymin), (xmax, ymin), (xmax, ymax - y)],
        [(xmax - x, ymax), (xmin, ymax), (xmin, ymin + y)],
    )
    corners = [*below, *above, below[0]]
    return f"POLYGON (({', '.join(f'{a:.5f} {b:.5f}' for a, b in corners)}))"


def prepare(client: Client) -> None:
    """Subscribe what the tour finds there, and publish a first message."""
    for key, (subscriber, filter, corners) in SAMPLES.items():
        client.subscribe(key, subscriber, filter.format(box(*corners)))
    client.subscribe("depot", "fleet", f"S_WITHIN(at, {box(*DEPOT)})", track="bus", on=["enter", "exit"])
    client.publish({"text": "drizzle", "severity": 0, "hail": False, "geometry": _square(11.307, 43.333)})


def _square(x: float, y: float, half: float = 0.004) -> dict[str, Any]:
    ring = [
        [x - half, y - half],
        [x + half, y - half],
        [x + half, y + half],
        [x - half, y + half],
        [x - half, y - half],
    ]
    return {"type": "Polygon", "coordinates": [ring]}


def take(shown: LiveMap, client: Client, key: str, shoot: Shoot = no_picture) -> None:
    """Sign in, draw, try, subscribe, publish, and ask why and why not; each step must do what its caption says."""
    page = shown.page
    shown.open(VIEW)
    expect(page.get_by_label("API key")).to_be_visible()
    shown.log_in(key)
    expect(page.get_by_test_id("message-1")).to_be_visible()
    shoot("start", "Subscriptions are regions on a map: here is who asked for what", page)
    _subscribe(shown, shoot)
    _publish(shown, shoot)
    _ask(shown, shoot)
    _reload(shown)
    _follow(shown, client, shoot)


def _subscribe(shown: LiveMap, shoot: Shoot) -> None:
    page, form = shown.page, shown.form("Subscription")
    shown.draw_rectangle(form, *OLD_TOWN)
    shoot("draw", "Draw a region of your own", page)
    shown.fill_condition(form, "severity", ">=", 2)
    text = form.get_by_label("Filter as CQL2")
    expect(text).to_have_value(
        re.compile(r"^S_INTERSECTS\(geometry, .*\) AND severity >= 2$", re.DOTALL | re.IGNORECASE)
    )
    text.scroll_into_view_if_needed()
    shoot("filter", "Add a condition: the form writes CQL2, and reads it back", page)
    form.get_by_role("button", name="Dry run").click()
    tried = form.get_by_role("region", name="Dry run")
    expect(tried).to_contain_text("0 messages of 1")
    tried.scroll_into_view_if_needed()
    shoot("trial", "Try it on the last hour before you subscribe", page)
    form.get_by_label("Key").fill("old-town")
    form.get_by_label("Subscriber").fill("civil protection")
    shown.submit(form, "Subscribe", "Subscription old-town")
    shoot("subscribed", "Subscribed: from now on every message is compared, exactly", page)


def _publish(shown: LiveMap, shoot: Shoot) -> None:
    page, form = shown.page, shown.form("Message")
    shown.draw_polygon(form, STORM)
    shown.fill_attribute(form, "text", "text", "thunderstorm")
    shown.fill_attribute(form, "severity", "number", 3)
    shoot("storm", "Draw a message: a storm over the edge of the town", page)
    message = shown.submit(form, "Publish", "Message 2")
    expect(message.get_by_role("list", name="Subscriptions that matched")).to_contain_text("old-town")
    shoot("match", "It is matched and delivered at once", page)


def _ask(shown: LiveMap, shoot: Shoot) -> None:
    page = shown.page
    page.get_by_role("list", name="Subscriptions that matched").get_by_role("button", name="old-town").click()
    why = page.get_by_role("article", name="Why message 2 and old-town")
    expect(why).to_contain_text("It matches.")
    expect(why.get_by_role("img")).to_have_accessible_name(re.compile("overlaps"))
    expect(why.get_by_role("list", name="Reasons")).to_contain_text("severity")
    shoot("why", "Why? The two regions overlap, and severity is 3", page)
    why.get_by_role("button", name="Message 2").click()
    page.get_by_role("button", name="Search a subscription").click()
    page.get_by_label("Key or subscriber").fill("hospital")
    page.get_by_role("search").get_by_role("button", name="hospital").click()
    why = page.get_by_role("article", name="Why message 2 and hospital")
    expect(why).to_contain_text("It does not match.")
    expect(why.get_by_role("list", name="Reasons")).to_contain_text("apart")
    shoot("why-not", "Why not? The hospital is apart from the storm", page)


def _reload(shown: LiveMap) -> None:
    page = shown.page
    page.reload()
    expect(page.get_by_role("article", name="Why message 2 and hospital")).to_be_visible()
    shown.wait_until_live()
    shown.wait_for_subscriptions(len(SAMPLES) + 2)
    shown.wait_for_message(2)


def _follow(shown: LiveMap, client: Client, shoot: Shoot) -> None:
    page = shown.page
    shown.open(VIEW)
    shown.wait_until_live()
    panel = shown.panel("Tracks")
    for step in range(4):
        client.publish({"bus": "b7", "at": {"type": "Point", "coordinates": [11.295 + 0.006 * step, 43.307]}})
    log = panel.get_by_role("list", name="Enters and leaves")
    expect(log.get_by_role("listitem").first).to_contain_text("b7 entered depot")
    shoot("enter", "Tracked objects: bus b7 enters the depot ...", page)
    for step in range(1, 4):
        client.publish({"bus": "b7", "at": {"type": "Point", "coordinates": [11.313 + 0.006 * step, 43.307]}})
    expect(log.get_by_role("listitem").first).to_contain_text("b7 left depot")
    shoot("leave", "... and leaves it, told once each, not at every position", page)
