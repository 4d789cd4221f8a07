"""The headline table of docs/performance.md, taken from the full tables in benchmarks/results.

    python -m benchmarks.headlines

A row names a file, a section and how its work and its peer begin; a row that is not there is an error, so that the page
cannot quote a number that no run wrote.
"""

import argparse

from benchmarks.command import command
from benchmarks.report import ROOT, put_between

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
LARGE = "Random operators, messages of 1 to 25 % of the universe ("
# What readers ask, and the row that answers: file, section, work, peer.
ROWS = (
    ("Relate one message to 10,000 regions", "relate", "One message against", "message of 20 points", "shapely.relate"),
    ("Which of 85,550 regions stand in their relation to a message", "match", LARGE,
     "SoCal, 85,550 polygons, kinds A, B, C", "Shapely"),
    ("The same for 1,000,000 regions", "match", LARGE, "LA, 1,000,000 polygons, kinds A, B, C", "Shapely"),
    ("S_INTERSECTS, 100 of 1,000,000 subscriptions match", "match", "S_INTERSECTS, messages that", "N = 1,000,000", ""),
    ("A point against 10,000 polygons, one by one", "match", "Points against", "match_keys", "Koncorde"),
    ("1,000,000 filters on regions and scalars", "mixed", "Mixed filters, about 100 answers: against",
     "1,000,000 filters", "DuckDB"),
    ("The same, the quickest plan in Python", "mixed", "Mixed filters, about 100 answers: against", "1,000,000 filters",
     "Python: STRtree of boxes"),
    ("A million messages in Arrow, filters on a region, a number and a text, 2 threads", "columns",
     "Batches of messages in Arrow, 20,000", "region, number and text, 1,000,000 messages, threads=2", "STRtree"),
    ("The same messages as newline JSON, `contrada match`", "columns", "contrada match on newline JSON",
     "1,000,000 messages", "msgspec"),
    ("1,000,000 filters on scalars", "mixed", "Scalar filters alone", "equality-heavy, 1,000,000 filters, match_keys",
     "a-tree"),
    ("Points against 100,000 circles, batch", "distance", "Points against circles, batch", "100,000 points", "Shapely"),
    ("Polygons against 100,000 lines, batch", "lines", "Polygons against lines, S_INTERSECTS", "",
     "Shapely, tree of the lines"),
    ("100,000 commands of covering, 16 dimensions", "cover", "Covering: indexes", "k-d tree: 100,000 commands, 16", ""),
    ("20,000 messages on Spark, 85,550 regions", "spark", "Spark: matching", "20,000 messages, SoCal", "mapInArrow"),
    ("A stream against 100,000 subscriptions", "stream", "Streams: the highest rate", "100,000 subscriptions", ""),
    ("A stream of 1,000,000 tracked objects, 10,000 fences", "tracked-stream", "Tracked objects in a stream: fixes",
     "1,000,000 objects", "transformWithStateInPandas"),
    ("10,000 messages, 1,000,000 regions, join on Spark", "sedona", "Sedona: S_INTERSECTS as a join",
     "10,000 messages, LA (1,000,000), prepared: count and hash, broadcast", "Sedona"),
    ("The same with 500 messages, from files", "sedona", "Sedona: S_INTERSECTS as a join, few messages",
     "500 messages, LA (1,000,000), from files", "Sedona"),
)  # fmt: skip


def tables_of(page: str) -> dict[str, list[dict[str, str]]]:
    """Return the tables of a page of results, by section: rows by their headings."""
    found = {}
    for part in page.split("\n### ")[1:]:
        section, *lines = part.splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
        found[section] = [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]
    return found


def row_of(file: str, section: str, work: str, peer: str) -> dict[str, str]:
    """Return the only row, or the first, of a section that begins as named."""
    for title, rows in tables_of((RESULTS / f"{file}.md").read_text()).items():
        for row in rows:
            if title.startswith(section) and row["work"].startswith(work) and row["against"].startswith(peer):
                return row
    raise SystemExit(f"{file}.md has no row {work!r} against {peer!r} in a section {section!r}")


def main() -> None:
    """Write the table."""
    argparse.ArgumentParser(prog=command(), description=(__doc__ or "").splitlines()[0]).parse_args()
    lines = ["| what | peer | ours | peer's | ours is | differ | table |", "|---|---|---:|---:|---|---|---|"]
    for title, file, section, work, peer in ROWS:
        row = row_of(file, section, work, peer)
        cells = (row["against"], row["ours"], row["peer"], row["ours is"], row.get("answers that differ", ""))
        lines.append("| " + " | ".join((title, *cells, f"`{file}.md`")) + " |")
    put_between(PAGE, "headlines", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
