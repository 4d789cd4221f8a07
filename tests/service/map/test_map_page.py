"""The live map's page: what is served, under which headers, and that only names of its own files are looked up."""

from __future__ import annotations

import re

import pytest

from contrada.service.http.routes import TABLE
from contrada.service.map.page import security_headers
from contrada.web import page_folder
from serving import is_problem, run, site

BUILT = page_folder()
needs_page = pytest.mark.skipif(BUILT is None, reason="the page is not built: run `make web`")


def policy_of(answer):
    directives = [part.split() for part in answer.headers["Content-Security-Policy"].split(";")]
    return {name: values for name, *values in directives}


@needs_page
def test_the_page_and_all_its_files_are_served_without_a_key(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            page = await here.ask("GET", "/", key=None)
            assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
            names = re.findall(r'(?:src|href)="\./assets/([^"]+)"', page.body.decode())
            assert {name.rpartition(".")[2] for name in names} == {"js", "css", "svg"}
            for name in sorted(path.name for path in (BUILT / "assets").iterdir()):
                answer = await here.ask("GET", f"/assets/{name}", key=None)
                assert answer.status == 200
                assert "immutable" in answer.headers["Cache-Control"]
                assert answer.headers["X-Content-Type-Options"] == "nosniff"

    run(work())


@needs_page
def test_no_inline_script_or_style_and_no_frame_is_allowed(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            page = await here.ask("GET", "/", key=None)
            policy = policy_of(page)
            assert policy["default-src"] == ["'none'"]
            for name in ("script-src", "style-src", "worker-src", "connect-src"):
                assert policy[name] == ["'self'"]
            assert policy["frame-ancestors"] == ["'none'"]
            text = page.body.decode()
            assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
            assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))

    run(work())


@needs_page
def test_a_page_that_is_known_is_not_sent_again(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            page = await here.ask("GET", "/", key=None)
            again = await here.ask("GET", "/", key=None, **{"If-None-Match": page.headers["ETag"]})
            assert (again.status, again.body) == (304, b"")
            assert (await here.ask("GET", "/", key=None, **{"If-None-Match": '"other"'})).body == page.body

    run(work())


@pytest.mark.parametrize("name", ["nothing.js", "..%2Findex.html", "%2Fetc%2Fpasswd", "..", ".hash", "index.html"])
def test_other_names_are_not_found(tmp_path, name):
    async def work():
        async with site(tmp_path) as here:
            assert is_problem(await here.ask("GET", f"/assets/{name}", key=None), 404, "not-found")

    run(work())


def test_a_server_without_a_map_has_no_page(tmp_path):
    config = tmp_path / "contrada.toml"
    config.write_text("[map]\nenabled = false\n")

    async def work():
        async with site(tmp_path / "state", config=config) as here:
            assert is_problem(await here.ask("GET", "/", key=None), 404, "not-found")

    run(work())


def test_the_policy_lets_the_page_reach_the_tiles_of_the_settings_and_nothing_else():
    def connections(tiles):
        return re.search(rb"connect-src ([^;]*);", dict(security_headers(tiles))[b"content-security-policy"])[1]

    assert connections("http://tiles.example/{z}/{x}/{y}") == b"'self' http://tiles.example"
    assert connections("/tiles/{z}/{x}/{y}") == connections(None) == b"'self'"


def test_routes_of_the_page_need_no_key():
    assert {one.path for one in TABLE if one.scope is None} >= {"/", "/assets/{name}", "/docs"}
