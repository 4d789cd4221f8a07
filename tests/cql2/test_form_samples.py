"""Filters that the form of the live map writes: text and JSON are the same predicate, and JSON comes back as written.

The map's own tests (web/test/do/filter.test.ts) hold the form against the same file.
"""

import json
from pathlib import Path

import pytest

import contrada as ct
from contrada.cql2 import to_json

SAMPLES = json.loads((Path(__file__).parents[2] / "web" / "src" / "do" / "filter" / "samples.json").read_text("utf-8"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["text"][:40])
def test_the_form_writes_what_the_server_reads(sample):
    predicate = ct.parse(sample["text"])
    assert predicate == ct.parse(sample["json"])
    assert to_json(predicate) == sample["json"]
