"""Help pages at two widths: no types behind flags, no swallowed brackets, every option with words of its own."""

import re

import pytest
import typer
from commands import COMMANDS, GROUPS

from console import contrada
from contrada.cli import check, demo, ingest, match, overlay, overlay_peer, simplify, stream
from contrada.cli.main import app
from contrada.cli.pages import escaped
from effort import slow

TEXTS = {
    "match": match.__doc__, "stream": stream.__doc__, "check": check.__doc__, "simplify": simplify.__doc__,
    "demo": demo.__doc__, "ingest": ingest.__doc__, "overlay peer": overlay_peer.peer.__doc__,
    "overlay publish": overlay_peer.publish.__doc__, "overlay show": overlay.show.__doc__,
}  # fmt: skip


def command_of(path):
    command = typer.main.get_command(app)
    for name in path.split():
        command = command.commands[name]
    return command


def page(path, width):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(width))
        result = contrada(*path.split(), "--help")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def words(text):
    """A page without its frames and line breaks, which depend on the width."""
    return re.sub(r"[│╭╮╰╯─\s]+", "", text)


@pytest.mark.parametrize("width", [80, slow(200)])
@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS])
def test_pages(path, width):
    """The page has every word of the command's text, and every option."""
    text = page(path, width)
    assert words(TEXTS.get(path, "").replace("\b", "")) in words(text)
    assert "<bool>" not in text
    assert "BOOLEAN" not in text
    assert "\\[" not in text
    assert max(map(len, text.splitlines())) <= width
    for param in command_of(path).params:
        if not getattr(param, "hidden", False):
            assert param.help, param.name
            for option in param.opts if param.param_type_name == "option" else []:
                assert option in text


def test_every_text_has_its_page():
    assert set(TEXTS) <= set(COMMANDS)


def test_brackets_are_escaped_as_rich_wants_it():
    from rich.markup import escape
    from rich.text import Text

    for text in ("contrada[spark]", "a [b] c", "[/]", "[1, 2]", "\\[x]", "[red]x[/red]", "[[x]]", "no brackets"):
        assert escaped(text) == escape(text)
        assert Text.from_markup(escaped(text)).plain == text
