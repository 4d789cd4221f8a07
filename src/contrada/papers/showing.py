"""Tables of an exhibit as Markdown, from rows alone; the paper's values beside ours where the parameters are equal."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from contrada.papers.exhibit import Exhibit, PaperClaim, Row, TableColumn, TableLayout


def mean_of(rows: Iterable[Row], value: str, **chosen: Any) -> float:
    """Return the mean of a value over the rows with the chosen parameters; NaN without rows.

    >>> mean_of([{"k": 1, "nv": 2}, {"k": 1, "nv": 4}, {"k": 2, "nv": 9}], "nv", k=1)
    3.0
    """
    found = [float(row[value]) for row in rows if all(row[name] == wanted for name, wanted in chosen.items())]
    return statistics.fmean(found) if found else float("nan")


def values_of(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the distinct values of a parameter, in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def is_printed(exhibit: Exhibit, rows: list[Row]) -> bool:
    """Return True if all rows have the paper's parameters."""
    return bool(rows) and all(map(exhibit.is_printed, rows))


def findings(exhibit: Exhibit, rows: list[Row]) -> dict[str, bool]:
    """Return the claims that the rows decide; those with the paper's numbers only for the paper's parameters."""
    shown: Iterable[PaperClaim] = (
        claim for claim in exhibit.claims if not claim.has_numbers or is_printed(exhibit, rows)
    )
    decided = ((claim.text, claim.holds(rows)) for claim in shown)
    return {text: holds for text, holds in decided if holds is not None}


def markdown(exhibit: Exhibit, rows: list[Row]) -> str:
    """Return all tables and findings of an exhibit."""
    seeds = len(values_of(rows, "seed"))
    spread = "one seed" if seeds == 1 else f"mean and standard deviation over {seeds} seeds"
    beside = ", the paper's in brackets" if any(exhibit.beside(row) for row in rows) else ""
    parts = [f"**{exhibit.labels}**: {exhibit.claim} ({spread}{beside}.)", fixed_values(exhibit, rows)]
    parts += ["\n".join(table(exhibit, layout, rows)) for layout in exhibit.layouts]
    if exhibit.tell is not None:
        parts.append(exhibit.tell(rows))
    found = findings(exhibit, rows)
    parts.append("\n".join(f"- {'holds' if holds else 'does not hold'}: {text}" for text, holds in found.items()))
    return "\n\n".join(part for part in parts if part)


def fixed_values(exhibit: Exhibit, rows: list[Row]) -> str:
    """Return the parameters that have one value in all rows, as text."""
    alone = {name: values_of(rows, name) for name in exhibit.parameters if name in rows[0]}
    return ", ".join(f"{name} = {shown(values[0])}" for name, values in alone.items() if len(values) == 1)


def varied_beside(exhibit: Exhibit, rows: list[Row], shown_already: Iterable[str | None]) -> list[str]:
    """Return parameters with several values in the rows that a table or chart does not show by itself."""
    others = [name for name in exhibit.parameters if name not in tuple(shown_already) and name in rows[0]]
    return [name for name in others if len(values_of(rows, name)) > 1]


def table(exhibit: Exhibit, layout: TableLayout, rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table; a parameter that varies is never averaged over."""
    groups: list[Any] = [None] if layout.across is None else values_of(rows, layout.across)
    varied = [name for name in layout.down if len(values_of(rows, name)) > 1] or list(layout.down[:1])
    down = [*varied, *varied_beside(exhibit, rows, (*layout.down, layout.across))]
    titles = [column.title for column in layout.columns]
    if layout.across is not None and len(titles) == 1:
        yield f"{titles[0]}, by {layout.across}:\n"
        titles = [shown(group) for group in groups]
    elif layout.across is not None:
        titles = [f"{layout.across} {shown(group)}: {title}" for group in groups for title in titles]
    yield "| " + " | ".join([*down, *titles]) + " |"
    yield "|" + "---|" * (len(down) + len(titles))
    lines: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in down), []).append(row)
    for values, of_line in lines.items():
        cells = [
            cell(exhibit, column, [row for row in of_line if group is None or row[layout.across or ""] == group])
            for group in groups
            for column in layout.columns
        ]
        yield "| " + " | ".join([*map(shown, values), *cells]) + " |"


def cell(exhibit: Exhibit, column: TableColumn, rows: list[Row]) -> str:
    """Return the mean over seeds with its deviation, and the paper's value in brackets."""
    values = [column.factor * float(row[column.value]) for row in rows if row.get(column.value) is not None]
    if not values:
        return ""
    text = format(statistics.fmean(values), column.form)
    if len(values) > 1:
        text += f" ± {format(statistics.stdev(values), column.form)}"
    printed = exhibit.beside(rows[0]).get(column.value)
    return text if printed is None else f"{text} ({format(column.factor * printed, column.form)})"


def shown(value: Any) -> str:
    """Return a value of a parameter as text.

    >>> shown(10000), shown("zipf"), shown(0.05)
    ('10,000', 'zipf', '0.05')
    """
    return f"{value:,}" if isinstance(value, int) else str(value)
