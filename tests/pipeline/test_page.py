"""The examples of docs/pipeline.md and docs/deployment.md run as they stand."""

import re
from pathlib import Path

import contrada
from contrada.pipeline import artifact_cache as tables

PAGE = Path(__file__).parent.parent.parent / "docs" / "pipeline.md"


def test_the_example_prints_what_the_page_says(spark, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "cache_home", lambda: tmp_path)
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (text,) = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == text


def test_the_job_of_the_page_about_deployment_tells_what_executors_have(spark, capsys):
    page = PAGE.with_name("deployment.md")
    (code,) = re.findall(r"^```py\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(code, str(page), "exec"), {})
    assert contrada.__version__ in capsys.readouterr().out
