"""Entry points of the package, found by looking: public names, commands, and readers by format."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import contrada as ct

# Methods that Python calls for operators and that users' values reach.
OPERATORS = frozenset(
    ("__getitem__", "__contains__", "__eq__", "__or__", "__ror__", "__and__", "__rand__", "__sub__", "__le__")
)
READERS = ("read_messages", "read_subscriptions", "read_subscription_table", "read_zones", "read_changes")


def entry_points() -> dict[str, Any]:
    """Every entry point by name: `Region.from_wkt`, `contrada match`, `read_messages[cap]`."""
    return {**dict(_public()), **dict(_commands()), **dict(_readers()), **dict(_pipeline())}


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
    for base in kind.__mro__:
        if not base.__module__.startswith("contrada"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") and name not in OPERATORS:
                continue
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(function):
                yield name, value


def _commands() -> Iterator[tuple[str, Any]]:
    import typer

    from contrada.cli.main import app

    todo = [("contrada", typer.main.get_command(app))]
    while todo:
        name, command = todo.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            todo += [(f"{name} {each}", found) for each, found in inner.items()]


def _readers() -> Iterator[tuple[str, Any]]:
    from contrada.formats.records import FORMATS

    for reader in READERS:
        yield from ((f"{reader}[{format}]", reader) for format in FORMATS)


def _pipeline() -> Iterator[tuple[str, Any]]:
    from contrada import pipeline

    for name in pipeline.__all__:
        yield f"pipeline.{name}", name
    yield "overlay frames", None
