"""The browser of the tests: it draws WebGL, and sees what is wrong with a page."""

import pytest

from browser import DRAWS, check_access, check_width, context, give_up, watch
from fetched_programs import NoProgramError, program

pytestmark = pytest.mark.slow

BAD = """<!doctype html><html lang="en"><title>Bad</title>
<style>p { color: #aaa; background: #fff; width: 500px }</style>
<main><p>Pale</p><button></button></main></html>"""
GOOD = """<!doctype html><html lang="en"><title>Good</title><main><h1>Dark on white</h1></main></html>"""


def test_webgl_draws_without_a_graphics_card(chromium):
    with context(chromium) as window:
        assert window.new_page().evaluate(DRAWS) == [0, 255, 0, 255]


def test_a_program_that_cannot_be_had_is_named(tmp_path):
    def fetch(place, cache):
        raise NoProgramError("there is no no-such-program, and nothing to fetch it with")

    with pytest.raises(NoProgramError, match="there is no no-such-program"):
        program(["no-such-program"], tmp_path, fetch)


def test_continuous_integration_does_not_skip(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no apt-get"):
        give_up("no apt-get")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no apt-get"):
        give_up("no apt-get")


def test_faults_of_a_page_are_found(chromium):
    with context(chromium, size=(360, 740)) as window:
        page = window.new_page()
        seen = watch(page, "http://127.0.0.1:1")
        page.set_content(BAD)
        page.evaluate("fetch('http://example.invalid/').catch(() => 0)")
        page.evaluate("setTimeout(() => alert('hello'))")
        page.evaluate("console.error('bad')")
        page.wait_for_timeout(100)
        assert seen.strangers == ["http://example.invalid/"]
        assert seen.dialogs == ["hello"]
        assert any("bad" in error for error in seen.errors)
        with pytest.raises(AssertionError, match=r"is 50\d pixels wide"):
            check_width(page)
        with pytest.raises(AssertionError) as told:
            check_access(page)
        assert "color-contrast" in str(told.value)
        assert "button-name" in str(told.value)
        page.set_content(GOOD)
        check_width(page)
        check_access(page)
