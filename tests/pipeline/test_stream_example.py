"""The example of docs/streams.md does what it says."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "stream_of_alerts.py"


def test_a_stream_of_alerts(spark):
    made = runpy.run_path(str(EXAMPLE))
    assert made["found"] == [
        ("fire", "farm", "farm", 1), ("flood", "ops", "harbour", 0), ("fog", "town", "school", 0),
    ]  # fmt: skip
    assert made["rejected"] == ['{"id": "half a']
