"""Examples on Spark of the guides and the reference run as they stand."""

import pytest

import contrada
from contrada.pipeline import artifact_cache as tables
from doc_pages import blocks, page_text


@pytest.mark.parametrize("name", ["pipeline.md", "api/pipeline.md", "coming-from-sedona.md"])
def test_the_examples_print_what_the_page_says(spark, capsys, monkeypatch, tmp_path, name):
    monkeypatch.setattr(tables, "cache_home", lambda: tmp_path)
    page, names = page_text(name), {}
    for code, text in zip(blocks(page, "py"), blocks(page, "text"), strict=True):
        exec(compile(code, name, "exec"), names)
        assert capsys.readouterr().out == text


def test_the_example_of_the_report_writes_one(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "cache_home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(page_text("report.md"), "py")
    exec(compile(code, "report.md", "exec"), {})
    assert "A day of warnings" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_the_job_of_the_page_about_deployment_tells_what_executors_have(spark, capsys):
    (code,) = blocks(page_text("deployment.md"), "py")
    exec(compile(code, "deployment.md", "exec"), {})
    assert contrada.__version__ in capsys.readouterr().out
