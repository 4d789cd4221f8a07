"""The example of docs/pipeline.md runs as it stands, and prints what the page says."""

import re
from pathlib import Path

from contrada.pipeline import tables

PAGE = Path(__file__).parent.parent.parent / "docs" / "pipeline.md"


def test_the_example_prints_what_the_page_says(spark, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "cache_home", lambda: tmp_path)
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (text,) = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == text
