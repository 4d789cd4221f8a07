"""The live map for everybody: names and contrast in every state, phone width, keyboard alone, public screens."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

import tour
from browser import PHONE, WCAG, WIDE, check_access, check_width, context, watch
from contrada.client import Client
from live_map import LiveMap
from server_process import serving

pytestmark = pytest.mark.slow

VIEW = tour.VIEW
LOOKS = [(size, scheme) for size in (WIDE, PHONE) for scheme in ("light", "dark")]
STATES = {
    "messages": {},
    "nothing asked": {"panel": "ask"},
    "message": {"message": "1", "panel": "ask"},
    "subscription": {"subscription": "hospital", "panel": "ask"},
    "why not": {"message": "1", "subscription": "hospital", "panel": "ask"},
    "do": {"panel": "do"},
    "tracks": {"panel": "tracks"},
    "network": {"panel": "network"},
    "past": {"time": "2026-01-01T00:00:00.000Z"},
}
SEEN = {  # What stands in a panel once it is loaded.
    "message": "Attributes",
    "subscription": "Latest messages",
    "why not": "It does not match.",
    "do": "New subscription",
    "tracks": "Enters and leaves",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with the subscriptions of the tour, and one message and one bus."""
    title = "A name that is too long for the header of a phone"
    with serving(tmp_path_factory.mktemp("access"), "--map-title", title) as found:
        fill(found)
        yield found


def fill(server):
    with Client(server.url, server.key) as client:
        tour.prepare(client)
        client.publish({"bus": "b7", "at": {"type": "Point", "coordinates": [11.31, 43.307]}})


def ids(value):
    return str(value[0]) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=ids)
def test_every_state_has_names_and_contrast_and_stays_in_the_window(chromium, server, size, scheme):
    faults = []
    rules = WCAG if scheme == "light" else ("color-contrast",)  # dark mode changes colours and nothing else
    with context(chromium, size, scheme) as window:
        page = window.new_page()
        seen = watch(page, server.url)
        shown = LiveMap(page, server.url)
        shown.open(VIEW)
        expect(page.get_by_label("API key")).to_be_visible()
        faults += found_in(page, "sign in", rules)
        shown.log_in(server.key)
        for state, link in STATES.items():
            shown.open(VIEW, **link)
            shown.wait_until_live()
            if state in SEEN:
                expect(page.get_by_role("tabpanel").get_by_text(SEEN[state]).first).to_be_visible()
            faults += found_in(page, state, rules)
        page.get_by_role("button", name="Layers and legend").click()
        expect(page.get_by_role("group", name="Layers and legend")).to_be_visible()
        faults += found_in(page, "layers", rules)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Help and shortcuts").click()
        expect(page.get_by_role("dialog", name="Help")).to_be_visible()
        faults += found_in(page, "help", rules)
    assert not faults, "\n\n".join(faults)
    seen.check()


def found_in(page, state, rules):
    """What is wrong with a page in a state."""
    faults = []
    for check in (partial(check_access, rules=rules), check_width):
        try:
            check(page)
        except AssertionError as error:
            faults.append(f"--- {state}: {error}")
    return faults


def test_all_can_be_done_with_the_keyboard(chromium, tmp_path):
    with serving(tmp_path) as server, context(chromium) as window:
        page = window.new_page()
        seen = watch(page, server.url)
        shown = LiveMap(page, server.url)
        shown.open(VIEW)
        expect(page.get_by_label("API key")).to_be_focused()
        page.keyboard.type(server.key)
        page.keyboard.press("Enter")
        shown.wait_until_live()
        page.keyboard.press("3")  # the panel to do something
        tab_to(page, "WKT or coordinates")
        page.keyboard.type("POLYGON ((11.3 43.3, 11.4 43.3, 11.4 43.4, 11.3 43.4, 11.3 43.3))")
        page.keyboard.press("Control+Enter")
        tab_to(page, "Key")
        page.keyboard.type("by-key")
        tab_to(page, "Subscriber")
        page.keyboard.type("ann")
        page.keyboard.press("Enter")
        expect(page.get_by_role("article", name="Subscription by-key")).to_be_visible()
        with Client(server.url, server.key) as client:
            client.publish({"geometry": {"type": "Point", "coordinates": [11.35, 43.35]}})
        leave_fields(page)
        page.keyboard.press("1")
        expect(page.get_by_test_id("message-1")).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("2")
        tab_to(page, re.compile("^by-key ann"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("article", name="Why message 1 and by-key")).to_contain_text("It matches.")
        page.keyboard.press("Escape")
        expect(page.get_by_role("article", name="Why message 1 and by-key")).not_to_be_visible()
    seen.check()


NAME = """() => {
    const one = document.activeElement;
    const labels = one.labels ? [...one.labels].map(label => label.textContent) : [];
    return one.getAttribute("aria-label") ?? (labels.length ? labels[0] : one.textContent);
}"""


def tab_to(page, name):
    """Press Tab until something of this name has the focus, which must be visible."""
    for _ in range(120):
        page.keyboard.press("Tab")
        found = page.evaluate(NAME).strip()
        if name.search(found) if isinstance(name, re.Pattern) else found == name:
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab does not reach {name}")


def leave_fields(page):
    """Move the focus to where single keys are no text."""
    page.evaluate("document.activeElement.blur()")


def test_the_phone_has_all_panels(chromium, server):
    with context(chromium, PHONE, has_touch=True) as window:
        page = window.new_page()
        shown = LiveMap(page, server.url)
        shown.open(VIEW)
        shown.log_in(server.key)
        for panel in ("Messages", "Ask", "Do", "Tracks", "Network"):
            found = shown.panel(panel)
            expect(found).to_be_in_viewport()
            check_width(page)
        for button in page.get_by_role("banner").get_by_role("button").all():
            expect(button).to_be_in_viewport(ratio=1)
        shown.panel("Messages").get_by_test_id("message-1").tap()
        expect(page.get_by_role("article", name="Message 1")).to_be_in_viewport()
        page.get_by_role("button", name="Lower the panel").tap()
        box = page.get_by_test_id("map").bounding_box()
        assert box["height"] > 300


def test_a_public_screen_changes_nothing_until_somebody_signs_in(chromium, tmp_path):
    flags = ("--map-public", "default", "--map-public-shows", "filters,attributes,subscribers")
    with serving(tmp_path, *flags) as server, context(chromium) as window:
        fill(server)
        page = window.new_page()
        seen = watch(page, server.url)
        shown = LiveMap(page, server.url)
        shown.open(VIEW, subscription="hospital", panel="ask")
        shown.wait_until_live()
        expect(page.get_by_text("Read-only")).to_be_visible()
        expect(page.get_by_role("article", name="Subscription hospital")).to_be_visible()
        for name in ("Pause", "Change", "Delete"):
            expect(page.get_by_role("article").get_by_role("button", name=name)).to_have_count(0)
        expect(page.get_by_role("tab", name="Do")).to_have_count(0)
        with page.expect_console_message(lambda told: "401" in told.text):  # the browser tells of the refusal
            refused = page.evaluate(
                "fetch('/subscriptions/hospital', {method: 'DELETE'}).then(answer => answer.status)"
            )
        assert refused == 401
        seen.errors.clear()
        page.get_by_role("button", name="Sign in").click()
        shown.log_in(server.key)
        expect(page.get_by_role("tab", name="Do")).to_be_visible()
        expect(page.get_by_text("Read-only")).to_have_count(0)
        seen.check()


def test_a_map_that_is_left_early_leaves_nothing_behind(chromium, server):
    with context(chromium) as window:
        page = window.new_page()
        seen = watch(page, server.url)
        page.clock.install()
        shown = LiveMap(page, server.url)
        shown.open(VIEW)
        for moment in ("at once", "with messages", "while drawing"):
            page.get_by_label("API key").fill(server.key)
            page.get_by_role("button", name="Sign in").click()
            if moment == "with messages":
                shown.wait_for_message(1)
            if moment == "while drawing":
                shown.form("Message").get_by_role("button", name="Rectangle").click()
                expect(page.get_by_role("status").filter(has_text="Click one corner")).to_be_visible()
            page.get_by_role("button", name="Sign out").click()
            expect(page.get_by_label("API key")).to_be_visible()
            page.clock.fast_forward(20_000)  # what the map had put off
        # A request that was about to leave when the key was forgotten is refused, and the browser tells of it.
        seen.errors = [told for told in seen.errors if "status of 401" not in told]
        seen.check()


def test_the_demonstration_is_alive(chromium, tmp_path):
    """`python -m benchmarks.web` measures how soon."""
    with serving(tmp_path, "--demo") as server, context(chromium) as window:
        page = window.new_page()
        seen = watch(page, server.url)
        shown = LiveMap(page, server.url)
        shown.open()
        shown.wait_until_live()
        expect(page.get_by_text("Demonstration")).to_be_visible()
        expect(page.get_by_test_id("messages").get_by_text(re.compile("match(es)?$")).first).to_be_visible()
        panel = shown.panel("Tracks")
        expect(panel.get_by_role("list", name="Enters and leaves").get_by_role("listitem").first).to_be_visible()
        seen.check()
