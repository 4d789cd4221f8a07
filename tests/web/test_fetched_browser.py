"""Chromium is fetched where none is installed. Alone in its file: the browser of a module would be in the way."""

import shutil
from pathlib import Path

import pytest

from browser import DRAWS, browsing, chromium_program, context, give_up
from fetched_programs import NoProgramError

pytestmark = pytest.mark.slow


def test_chromium_is_fetched_where_none_is_installed(tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("apt-cache", "apt-get", "dpkg", "dpkg-deb", "tar", "sh", "rm"):
        found = shutil.which(name)
        if found is None:
            give_up(f"there is no {name}")
        (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    cache = tmp_path / "engines"
    try:
        fetched = chromium_program(cache)
    except NoProgramError as error:
        give_up(error)
    assert fetched == cache / "chromium"
    with browsing(cache=cache) as browser, context(browser) as window:
        assert window.new_page().evaluate(DRAWS) == [0, 255, 0, 255]
        assert Path(f"/proc/{_process_id(browser)}/exe").readlink().is_relative_to(cache)


def _process_id(browser):
    (found,) = [
        one["id"]
        for one in browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        if one["type"] == "browser"
    ]
    return found
