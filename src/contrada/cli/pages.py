"""Help pages of commands: flags without a type, arguments in capitals, brackets printed as written."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from contrada.cli.ending import errors_told, summarized

# Rich's pattern of a tag, from rich.markup.escape, whose import would load Rich at every start.
TAG = re.compile(r"(\\*)(\[[a-z#/@][^[]*?])")


def escaped(text: str) -> str:
    """Escape a text so that Rich prints it unchanged; it would drop `[spark]`.

    >>> print(escaped("Needs contrada[spark]; x in [0, 1]"))
    Needs contrada\\[spark]; x in [0, 1]
    """
    return TAG.sub(lambda found: f"{found[1] * 2}\\{found[2]}", text)


def joined(text: str) -> str:
    """Join the lines of each paragraph, as Click does; a paragraph that begins with \\b keeps them. Rich keeps all.

    >>> joined("One\\ntwo.\\n\\nThree\\nfour.")
    'One two.\\n\\nThree four.'
    """
    paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(each if each.startswith("\b") else each.replace("\n", " ") for each in paragraphs)


class PlainPages:
    """Gives a Typer class plain help pages."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        command: Any = self
        for described in (command, *command.params):
            if getattr(described, "help", None):
                described.help = escaped(joined(described.help))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters with --help: flags, which take no value, without a type, arguments in capitals."""
        command: Any = super()
        params: list[Any] = command.get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument" and param.metavar is None:
                param.metavar = str(param.name).upper()
        return params


SUMMARY = Annotated[
    str | None,
    typer.Option(
        "--summary", metavar="json|FILE",
        help="Write a JSON object when the command ends: as the last line of standard error, or to FILE.json.",
    ),
]  # fmt: skip


def with_summary(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a command with the option --summary, which `Command` handles."""

    @wraps(function)
    def run(*, summary: str | None = None, **given: Any) -> Any:
        return function(**given)

    own = signature(function, eval_str=True)
    option = Parameter("summary", Parameter.KEYWORD_ONLY, default=None, annotation=SUMMARY)
    made: Any = run
    made.__signature__ = own.replace(parameters=[*own.parameters.values(), option])
    made.__annotations__ = {name: one.annotation for name, one in made.__signature__.parameters.items()}
    return run


class Command(PlainPages, TyperCommand):
    """A command with plain help pages, and a summary when it ends."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with summarized(ctx.command_path.partition(" ")[2], ctx.params.get("summary")):
            return super().invoke(ctx)


class CommandGroup(PlainPages, TyperGroup):
    """A group of commands; an error of any of them is printed as one line."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the command line, which may print --help."""
        with errors_told():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        with errors_told():
            return super().invoke(ctx)


class App(typer.Typer):
    """A Typer application with our command classes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command."""
        add = super().command(name, cls=Command, **options)

        def added(function: Callable[..., Any]) -> Callable[..., Any]:
            add(with_summary(function))
            return function

        return added
