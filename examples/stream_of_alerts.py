"""Alerts come as files, facilities subscribe and unsubscribe meanwhile: a stream on this machine, with Spark.

Run it with `python examples/stream_of_alerts.py`; docs/streams.md explains it. It needs contrada[spark] and Java.
"""

# %% A directory of alerts, one of changes
import json
import tempfile
from pathlib import Path
from typing import Any

from contrada import pipeline
from contrada.pipeline.session import session

home = Path(tempfile.mkdtemp(prefix="contrada-stream-"))
for folder in ("alerts", "changes"):
    (home / folder).mkdir()


def put(folder: str, name: str, *records: Any) -> None:
    """Write records as lines; the file gets its name when it is whole."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    hidden = home / folder / f".{name}"
    hidden.write_text("\n".join(lines) + "\n")
    hidden.rename(home / folder / name)


# %% Who asks for what at the beginning
spark = session("local[2]")
subscriptions = spark.createDataFrame(
    [
        ("harbour", "ops", "severity >= 3 AND S_INTERSECTS(area, POLYGON((9 1, 14 1, 14 5, 9 5, 9 1)))"),
        ("school", "town", "S_INTERSECTS(area, POINT(3 3))"),
    ],
    "key string, subscriber string, filter string",
)


# %% The stream: lines of JSON in, Parquet out
def run() -> None:
    """Match what has come since the last time."""
    stream = pipeline.match_stream(
        pipeline.MessageFiles(spark, home / "alerts"),
        subscriptions,
        home / "changes",
        sink=home / "output",
        checkpoint=home / "checkpoint",
        trigger={"availableNow": True},  # leave it out, and the stream runs until it is stopped
        progress=lambda progress: print(progress.line()),
    )
    stream.wait()


def square(x: float, y: float, size: float) -> dict[str, Any]:
    """A square as GeoJSON."""
    ring = [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]
    return {"type": "Polygon", "coordinates": [ring]}


put(
    "alerts",
    "1.ndjson",
    {"id": "flood", "severity": 4, "area": square(10, 2, 2)},
    {"id": "fog", "severity": 1, "area": square(0, 0, 20)},
    '{"id": "half a',
)
run()

# %% The school closes, a farm opens; one record is bad
put(
    "changes",
    "1.ndjson",
    {"action": "unsubscribe", "key": "school"},
    {"key": "farm", "filter": "severity >= 1 AND S_INTERSECTS(area, POINT(3 3))"},
    {"key": "typo", "filter": "severity >="},
)
put("alerts", "2.ndjson", {"id": "fire", "severity": 5, "area": square(2, 2, 3)})
run()

# %% What came out
matches = spark.read.parquet(str(home / "output" / "matches")).orderBy("message_id", "key").collect()
found = [(row.message_id, row.subscriber, row.key, row.version) for row in matches]
for message, subscriber, key, version in found:
    print(f"{message} goes to {subscriber} for {key}, by version {version}")
rejected = [row.raw for row in spark.read.parquet(str(home / "output" / "rejected")).collect()]
print("no message:", rejected)
