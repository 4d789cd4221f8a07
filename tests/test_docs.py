"""The documentation runs, and names only what exists."""

import ast
import doctest
import inspect
import json
import re
from pkgutil import resolve_name
from textwrap import dedent

import pytest

from doc_pages import OPTIONS, ROOT, blocks
from effort import slow

EXAMPLE_FILES = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("examples/*.ipynb")])
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])
NAMES = [path.relative_to(ROOT / "docs").as_posix() for path in sorted(ROOT.glob("docs/**/*.md"))]
EXAMPLES = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"(?<![.\w])contrada(?:\.(?!md\b)\w+)+")
TARGET = re.compile(r"`make ([a-z-]+)")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def python_lines(text: str) -> str:
    """The page with everything blanked but the examples, so that a failure names the line of the page."""
    kept = [""] * text.count("\n")
    for block in EXAMPLES.finditer(text):
        first = text.count("\n", 0, block.start(1))
        kept[first : first + block[1].count("\n")] = block[1].splitlines()
    return "\n".join(kept) + "\n"


ON_SPARK = {"ingest.md"}  # a session of its own
# Kinds of code that tests run as it stands: here, as sessions of a shell or of a client, and as scripts.
RUN = ("python", "console", "pycon", "py")
# Pages that start with something else, and why.
NO_START = {
    "links.md": "starts two servers that live until they are stopped; tests/client/test_serve_page.py runs its lines",
    "map.md": "starts a server that lives until it is stopped; tests/cli/test_serve_demo.py runs it",
    "serve.md": "starts a server as start.md does, whose test runs these lines",
    "shared-log.md": "needs JetStream or Kafka; tests/service/shared_log runs both where they are installed",
}
# Names that pages import and the reference leaves out, and why.
NOT_IN_REFERENCE = {
    "contrada.kernels.match.tables.ITEMS": "architecture.md shows with it how kernels read arrays",
}
runs = [slow(page) if page.name in ON_SPARK else page for page in PAGES]


@pytest.mark.parametrize("page", runs, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_run(page, tmp_path, monkeypatch, own_types):
    monkeypatch.chdir(tmp_path)
    examples = python_lines(page.read_text())
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_named_modules_and_targets_exist_and_links_lead_somewhere(page):
    text, makefile = page.read_text(), (ROOT / "Makefile").read_text()
    for name in set(MODULE.findall(text)):
        resolve_name(name)
    for target in set(TARGET.findall(text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
    for link in LINK.findall(text):
        assert (page.parent / link).exists(), link


def test_every_page_is_in_the_navigation():
    settings = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"([\w/-]+\.md)$", settings[settings.index("\nnav:") :], re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("name", sorted({*NAMES} - {*NO_START}))
def test_every_page_starts_with_something_to_run(name):
    start = re.split(r"^## ", (ROOT / "docs" / name).read_text(), maxsplit=1, flags=re.MULTILINE)[0]
    kinds = re.findall(r"^```(\w*)\n.*?^```$", start, re.MULTILINE | re.DOTALL)
    assert kinds
    assert kinds[0] in RUN


def code_of(path):
    """The Python code of a page, a script or a notebook."""
    if path.suffix == ".py":
        return [path.read_text()]
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text())["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    text, parser = path.read_text(), doctest.DocTestParser()
    sessions = [example.source for kind in ("python", "pycon") for block in blocks(text, kind)
                for example in parser.get_examples(block)]  # fmt: skip
    return [*sessions, *map(dedent, blocks(text, "py"))]


def imports(code):
    """Modules and names of Contrada that code imports, in full."""
    for node in ast.walk(ast.parse(code)):
        names = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        yield from (name for name in names if name.split(".")[0] == "contrada")


def test_every_name_that_examples_import_is_in_the_reference():
    """Of a module, one of its names."""
    entries = {
        name for page in ROOT.glob("docs/api/*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
    }
    named = {name: path.name for path in [*PAGES, *EXAMPLE_FILES] for code in code_of(path) for name in imports(code)}
    assert len(named) > 30
    modules = {name for name in named if inspect.ismodule(resolve_name(name))}
    missing = {name: page for name, page in named.items() if name not in entries | modules}
    missing |= {name: named[name] for name in modules if not any(entry.startswith(f"{name}.") for entry in entries)}
    assert {name: missing[name] for name in missing if name not in NOT_IN_REFERENCE} == {}
    assert missing.keys() >= NOT_IN_REFERENCE.keys()


def test_the_architecture_names_every_folder():
    text = (ROOT / "docs" / "architecture.md").read_text()
    package = ROOT / "src" / "contrada"
    folders = {str(path.parent.relative_to(package)) for path in package.rglob("__init__.py")} - {".", "kernels"}
    missing = [name for name in folders if f"`{name}`" not in text and f"`{name.split('/')[0]}`" not in text]
    assert missing == []


def test_python_examples_are_sessions():
    # A block without a prompt would look tested and never run.
    for page in PAGES:
        for block in blocks(page.read_text(), "python"):
            assert ">>>" in block, f"{page.name}: {block[:60]!r}"
