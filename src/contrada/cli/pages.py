"""Help pages of commands: flags without a type, arguments in capitals, brackets of our texts as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from contrada.cli.ending import errors_told

# What Rich takes for a tag. It is the pattern of rich.markup.escape, which would import Rich at every start.
TAG = re.compile(r"(\\*)(\[[a-z#/@][^[]*?])")


def escaped(text: str) -> str:
    """Return a text that Rich prints as it is: it swallows `[spark]` else.

    >>> print(escaped("Needs contrada[spark]; x in [0, 1]"))
    Needs contrada\\[spark]; x in [0, 1]
    """
    return TAG.sub(lambda found: f"{found[1] * 2}\\{found[2]}", text)


def show_plainly(params: list[Any]) -> list[Any]:
    """Take the type off flags, which have no value, and write arguments as other programs do."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument" and param.metavar is None:
            param.metavar = str(param.name).upper()
    return params


class Command(TyperCommand):
    """A command of ours."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _escape(self)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with --help."""
        return show_plainly(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands; errors of all of them end in a line."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _escape(self)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with --help."""
        return show_plainly(super().get_params(ctx))

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the command line, which prints --help."""
        with errors_told():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        with errors_told():
            return super().invoke(ctx)


def _escape(command: Any) -> None:
    for described in (command, *command.params):
        if getattr(described, "help", None):
            described.help = escaped(described.help)


class App(typer.Typer):
    """A Typer whose commands are ours."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command."""
        return super().command(name, cls=Command, **options)
