"""Damaged files at the doors of the pipeline are rejected and never end the process that reads them."""

from pathlib import Path

import pytest

from verification.damage import run_cases


@pytest.mark.slow
def test_damaged_change_files_and_pieces_never_end_the_process():
    assert list(run_cases(str(Path(__file__).parent / "damaged_files.py"), 0, 150)) == []
