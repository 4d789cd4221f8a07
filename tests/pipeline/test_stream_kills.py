"""Parts of a stream are killed again and again; nothing is lost, and nothing is there twice without telling."""

import os
from pathlib import Path

import pytest
import stream_kills

import contrada as ct
from console import python


def killed(mode, place):
    environment = {**os.environ, "PYTHONPATH": str(Path(ct.__file__).parent.parent)}
    python(stream_kills.__file__, mode, place, 3, 11, env=environment, timeout=1800)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["driver", "executor"])
def test_no_message_is_lost_or_doubled(mode, tmp_path):
    killed(mode, tmp_path / "place")


@pytest.mark.slow
def test_in_kafka_none_is_lost_and_copies_are_equal(kafka_jars, tmp_path):
    killed("kafka", tmp_path / "place")


def test_what_is_wrong_is_found():
    """The judge of the runs above: lost messages, doubled ones, and batches of two versions."""
    good = [(0, "a", 0), (1, "a", 0), (2, "a", 1), (2, "b", 1)]
    keys = {}
    seen = stream_kills.check_rows(good, keys)
    stream_kills.check_all(seen, keys, 3, {"a"})
    for count, first, reason in ((4, {"a"}, r"lost: \[3\]"), (3, {"b"}, "a starting subscription is lost")):
        with pytest.raises(AssertionError, match=reason):
            stream_kills.check_all(seen, keys, count, first)
    for bad, reason in [
        ([*good, (0, "a", 0)], "twice"),
        ([*good, (0, "b", 1)], "versions 0 and 1"),
        ([*good, (3, "a", 1)], "not all of version 1"),
    ]:
        with pytest.raises(AssertionError, match=reason):
            stream_kills.check_rows(bad, {})
