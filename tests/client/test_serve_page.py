"""The page about the server, and the lines about it in the README, are what happens on a new server."""

import doctest
import os
import re
import subprocess

import pytest

from contrada.service.http.routes import TABLE
from doc_pages import OPTIONS, ROOT, blocks, check_printed, commands, page_text
from server_process import serving


@pytest.fixture(scope="module")
def own_server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("page")) as found:
        yield found


def printed_by(command, folder, server):
    env = {**os.environ, **server.environment}
    run = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    return run.stdout + run.stderr


def test_sessions_and_examples(own_server, tmp_path, monkeypatch):
    for name, value in own_server.environment.items():
        monkeypatch.setenv(name, value)
    text = page_text("serve.md")
    for part in re.split(r"(?=^## )", text, flags=re.MULTILINE):
        for command, expected in commands(part):
            check_printed(command, expected, printed_by(command, tmp_path, own_server))
        for example in blocks(part, "pycon"):
            run_example(example)
    examples = blocks((ROOT / "README.md").read_text(), "pycon")
    assert examples
    for example in examples:
        run_example(example)


def run_example(text):
    test = doctest.DocTestParser().get_doctest(text, {}, "serve.md", None, 0)
    failures = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_has_an_example(route):
    path = re.sub(r"\{\w+\}", r"[\\w.-]+", route.path)
    found = [command for command, _ in commands(page_text("serve.md")) if re.search(rf"_URL{path}(?![\w/])", command)]
    assert route.method in {method_of(command) for command in found}


def method_of(command):
    """The method of a curl command."""
    named = re.search(r"-X (\w+)", command)
    return named[1] if named else "POST" if re.search(r" -d | --data", command) else "GET"
