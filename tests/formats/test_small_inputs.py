"""Inputs below 1 MB take less than 1 GB, whether they are read or refused (small_inputs.py has them)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LARGEST = 1000  # MB
READ = {  # given and rejected
    "crs_of_a_collection": [0, 20_000],
    "long_crs_name": [0, 20_000],
    "long_xml_namespace": [0, 1],
    "allowed_xml_namespace": [0, 1],
    "equal_geocodes": [1, 0],
    "equal_circles": [1, 0],
    "nearly_equal_circles": [1, 0],
    "many_bad_blocks": [3_000, 3_000],  # messages without their areas
    "deep_names": [0, 1],
    "many_names": [0, 1],
    "parquet_pages": [0, 1],
    "parquet_of_nothing": [0, 1],
    "csv_header": [0, 1],
    "csv_header_twice": [0, 1],
}
PARSED = {
    "in_below_nots": 1,
    "repeated_key": "LanguageError",
    "one_long_and": "LanguageError",
    "many_attributes_in_one_and": "LimitError",
}
MATCHED = {
    "many_attributes": 1,
    "many_patterns": 1,
    "like_of_letters": 0,
    "like_with_holes": 0,
    "like_that_matches": 1,
    "like_of_a_frequent_gram": 0,
    "like_implied": 1,
}


def run(names):
    """The outcomes of inputs in a process of their own, in which no one may take more than LARGEST."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("small_inputs.py"), *names],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines, done.stderr[-2000:])
    assert not [line for line in lines if line[2] > LARGEST]
    return {name: outcome for name, outcome, *_ in lines}


@pytest.mark.parametrize("cases", [READ, PARSED, MATCHED], ids=["read", "parsed", "matched"])
def test_a_small_input_takes_little_memory(cases):
    assert run(cases) == cases


def test_a_long_value_of_a_dictionary_is_read_until_it_is_too_much():
    for name, (given, rejected) in run(["parquet_dictionary", "parquet_dictionary_of_subscriptions"]).items():
        assert given < 1000, name
        assert rejected == 1, name
