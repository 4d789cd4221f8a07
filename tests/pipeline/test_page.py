"""The examples of docs/pipeline.md and docs/deployment.md run as they stand."""

import pytest

import contrada
from contrada.pipeline import artifact_cache as tables
from doc_pages import blocks, page_text


def test_the_examples_print_what_the_page_says(spark, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "cache_home", lambda: tmp_path)
    page, names = page_text("pipeline.md"), {}
    for code, text in zip(blocks(page, "py"), blocks(page, "text"), strict=True):
        exec(compile(code, "pipeline.md", "exec"), names)
        assert capsys.readouterr().out == text


@pytest.mark.slow
def test_the_job_of_the_page_about_deployment_tells_what_executors_have(spark, capsys):
    (code,) = blocks(page_text("deployment.md"), "py")
    exec(compile(code, "deployment.md", "exec"), {})
    assert contrada.__version__ in capsys.readouterr().out
