"""The page about the server, and the lines about it elsewhere, are what happens on a new server."""

import doctest
import os
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from console import wait_for
from contrada.service.http.routes import TABLE
from doc_pages import OPTIONS, ROOT, blocks, check_printed, commands, page_text
from server_process import START_SECONDS, free_port, serving


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
    pages = (page_text(name) for name in ("api/client.md", "coming-from-tile38.md"))
    for text in ((ROOT / "README.md").read_text(), *pages):
        (example,) = blocks(text, "pycon")
        run_example(example)


def test_the_first_server(tmp_path, monkeypatch):
    """The page for newcomers: the lines that start a server, the variables of clients, and the example."""
    page, port = page_text("start.md"), free_port()
    _, start, variables = (block.replace("8080", str(port)) for block in blocks(page, "sh"))
    assert start.replace(str(port), "8080").splitlines()[-1] in page_text("serve.md")
    for name, value in re.findall(r"(\w+)=(\S+)", variables):
        monkeypatch.setenv(name, value)
    with servers(start, tmp_path, port):
        (example,) = blocks(page, "pycon")
        run_example(example)


@pytest.mark.slow
def test_two_linked_servers(tmp_path):
    """The page about links: a message crosses the link between the servers that its first lines start."""
    page, ports = page_text("links.md"), {"8081": str(free_port()), "8082": str(free_port())}
    (start, *_), (example,) = ([with_ports(one, ports) for one in blocks(page, kind)] for kind in ("sh", "pycon"))
    with servers(start, tmp_path, *ports.values()):
        run_example(example)


def with_ports(text, ports):
    """The text with other ports."""
    return re.sub("|".join(ports), lambda found: ports[found[0]], text)


@contextmanager
def servers(lines, folder, *ports):
    """Run lines of a shell that start servers, until the block ends."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"trap wait TERM\n{lines}\nwait"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        for port in ports:
            wait_for(partial(is_ready, port), START_SECONDS, (folder / "log").read_text)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def is_ready(port):
    """True if a server on this machine takes messages."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return True
    except OSError:
        return False


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
