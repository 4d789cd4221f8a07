"""The load test of the live map, small: it measures, and the page keeps up."""

import json
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.pictures.moving import WIDTH, Frame, write_gif
from benchmarks.web.watching import Tasks, rise, watch_tasks
from browser import context
from console import python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WORKS = "setInterval(() => { const end = performance.now() + 30; while (performance.now() < end); }, 100)"


def test_a_small_run_of_the_benchmark(tmp_path):
    python("-m", "benchmarks.web", "--quick")
    found = json.loads((ROOT / "build" / "bench" / "web-part.json").read_text())
    values = {row["work"].rpartition(": ")[2]: row["value"] for row in found["rows"]}
    assert values["tasks"] > 0
    assert 0 < values["p95"] <= values["longest"]
    assert values["objects of JavaScript, at the end"] > 1
    assert values["published"] > 0
    assert "Chromium" in found["versions"]


def test_tasks_of_the_page_are_seen(chromium):
    with context(chromium) as window:
        page = window.new_page()
        page.evaluate(WORKS)
        found = watch_tasks(page, 2)
        assert isinstance(found, Tasks)
        assert found.percentile(100) >= 29
        assert found.busy > 0


def test_a_rise_is_seen():
    assert rise([100, 101, 99, 100]) == pytest.approx(-0.6)
    assert rise([100, 110, 120]) > 15


def test_frames_become_a_moving_picture(tmp_path):
    shots = []
    for shade in (0, 128, 255):
        path = tmp_path / f"{shade}.png"
        Image.new("RGB", (1280, 800), (shade, 80, 80)).save(path)
        shots.append(Frame(path.read_bytes(), f"shade {shade}", 0.5))
    write_gif(tmp_path / "tour.gif", shots)
    with Image.open(tmp_path / "tour.gif") as found:
        assert (found.n_frames, found.width, found.info["duration"]) == (3, WIDTH, 500)
    with pytest.raises(ValueError, match="too long"):
        write_gif(tmp_path / "long.gif", [Frame(shots[0].png, "word " * 40, 1)])
