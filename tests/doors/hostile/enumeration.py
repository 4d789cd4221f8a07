"""Entry points of the package, found by looking: public names, commands, and readers by format."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import chain
from typing import Any

import contrada as ct

# Methods that Python calls for operators and that users' values reach.
OPERATORS = frozenset(
    ("__getitem__", "__contains__", "__eq__", "__or__", "__ror__", "__and__", "__rand__", "__sub__", "__le__")
)
READERS = ("read_messages", "read_subscriptions", "read_subscription_table", "read_zones", "read_changes")


def entry_points() -> dict[str, Any]:
    """Every entry point by name: `Region.from_wkt`, `contrada match`, `read_messages[cap]`."""
    return dict(chain(_public(), _commands(), _others()))


def _public() -> Iterator[tuple[str, Any]]:
    for name in ct.__all__:
        value = getattr(ct, name)
        if inspect.isclass(value):
            yield name, value
            if not issubclass(value, BaseException):
                yield from ((f"{name}.{method}", found) for method, found in _methods(value))
        elif callable(value):
            yield name, value


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods of a class that this package defines and that take something."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("contrada")]
    for name, value in chain.from_iterable(vars(base).items() for base in ours):
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function) and (name in OPERATORS or not name.startswith("_")):
            yield name, value


def _commands() -> Iterator[tuple[str, Any]]:
    import typer

    from contrada.cli.main import app

    todo = [("contrada", typer.main.get_command(app))]
    for name, command in todo:
        if inner := getattr(command, "commands", None):
            todo += [(f"{name} {each}", found) for each, found in inner.items()]
        else:
            yield name, command


def _others() -> Iterator[tuple[str, Any]]:
    from contrada import pipeline
    from contrada.formats.records import FORMATS

    yield from ((f"{reader}[{format}]", reader) for reader in READERS for format in FORMATS)
    yield from ((f"pipeline.{name}", name) for name in pipeline.__all__)
    yield "overlay frames", None
